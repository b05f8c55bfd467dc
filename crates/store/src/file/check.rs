//! Checks the file of a store before LMDB opens it.

use crate::error::{Error, Result};
use crate::file::meta::{self, Meta};
use crate::file::tree::check_kind;
use crate::file::walk;
use crate::file::{corrupt, first, page_multiple};
use crate::file_names::DATA;
use crate::options::Options;
use std::fs::File;
use std::io::ErrorKind::NotFound;
use std::path::Path;

/// Maximum number of checks of the end of a file while other processes commit.
const MAX_ATTEMPTS: usize = 100;

/// Checks the pages that LMDB trusts when it opens a file. Creates the file if it does not exist
/// and the options allow it. Returns the bytes in use.
///
/// To be opened for writing, a file must have all its pages: a commit to a truncated file would put
/// zeros in the place of the missing pages, and new pages after them.
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
    let meta =
        if options.read_only { read_meta(&file, &path)? } else { complete_meta(&file, &path)? };
    // Names of tables are looked up in the main table, in the order of its flags.
    check_kind("", &meta.main)?;
    Ok((meta.last_page + 1) * u64::from(meta.page_size))
}

fn read_meta(file: &File, path: &Path) -> Result<Meta> {
    // No process leaves a file without its meta pages.
    let found = meta::read(file, path, None)?;
    found.ok_or_else(|| corrupt(path, 0, "two meta pages", "an empty file"))
}

/// Returns the newest meta page, after checking that the file has all pages in use.
///
/// Other processes may commit meanwhile and reuse free pages, so damage is reported only if nothing
/// was committed since.
fn complete_meta(file: &File, path: &Path) -> Result<Meta> {
    let mut meta = read_meta(file, path)?;
    for _ in 0..MAX_ATTEMPTS {
        let checked = walk::check_end(file, path, meta);
        let newest = read_meta(file, path)?;
        match checked {
            Err(Error::Corrupt(_)) if newest.transaction != meta.transaction => meta = newest,
            checked => return checked.map(|()| meta),
        }
    }
    walk::check_end(file, path, meta).map(|()| meta)
}
