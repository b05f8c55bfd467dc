//! Checks the file of a store before LMDB opens it.

use crate::environment::page_multiple;
use crate::error::{Error, Result};
use crate::file::meta::{self, Meta};
use crate::file::{DATA, corrupt, first};
use crate::options::Options;
use crate::table::check_kind;
use crate::verify;
use std::fs::File;
use std::io::ErrorKind::NotFound;
use std::path::Path;

/// How often the end of a file is checked while other processes commit.
const MAX_LOOKS: usize = 100;

/// Checks the pages that LMDB trusts when it opens a file, which is created if there is none and
/// the options allow it. Returns how many bytes are in use.
///
/// To write, the file must have all its pages: a commit to one that was cut would put zeros in the
/// place of the pages that it lost, and new ones after them.
pub(crate) fn check_file(folder: &Path, options: &Options) -> Result<u64> {
    let path = folder.join(DATA);
    let open = || File::open(&path).map_err(|e| Error::io(&path, "open", e));
    let is_absent = |e: &Error| matches!(e, Error::Io(e) if e.source.kind() == NotFound);
    let file = match open() {
        Err(e) if is_absent(&e) && options.create && !options.read_only && folder.is_dir() => {
            first::create(&path, page_multiple(options.first_map()))?;
            open()?
        }
        file => file?,
    };
    let meta = if options.read_only { read_meta(&file, &path)? } else { uncut(&file, &path)? };
    // Tables are looked up by name in the main one, in the order that it says.
    check_kind("", &meta.main)?;
    Ok((meta.last_page + 1) * u64::from(meta.page_size))
}

fn read_meta(file: &File, path: &Path) -> Result<Meta> {
    // No process leaves a file without its first pages.
    let found = meta::read(file, path, None)?;
    found.ok_or_else(|| corrupt(path, 0, "two meta pages", "an empty file"))
}

/// Returns the newest meta page, after a check that the file has the pages in use.
///
/// Other processes may commit meanwhile and use free pages again: what is wrong is believed if
/// nothing was committed since.
fn uncut(file: &File, path: &Path) -> Result<Meta> {
    let mut meta = read_meta(file, path)?;
    for _ in 0..MAX_LOOKS {
        let checked = verify::check_end(file, path, meta);
        let newest = read_meta(file, path)?;
        match checked {
            Err(Error::Corrupt(_)) if newest.transaction != meta.transaction => meta = newest,
            checked => return checked.map(|()| meta),
        }
    }
    verify::check_end(file, path, meta).map(|()| meta)
}
