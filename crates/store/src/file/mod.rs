//! The file of a store, read as bytes and not through LMDB, which trusts what it finds.
//!
//! `first` has the file of an empty store, `layout` the offsets, `meta` the two pages that a file
//! begins with, `tree` what is known of a tree, and `page` the entries of one page. Everything is
//! checked before it is used.

pub(crate) mod first;
pub(crate) mod layout;
pub(crate) mod meta;
pub(crate) mod page;
pub(crate) mod tree;

use crate::error::{Damage, Error};
use crate::options::Options;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The name of the data within a store's folder.
pub(crate) const DATA: &str = "data.mdb";

/// Makes the folder of a store, if the options allow it and there is none.
pub(crate) fn make_folder(path: &Path, options: &Options) -> Result<(), Error> {
    if options.read_only || !options.create {
        return Ok(());
    }
    match std::fs::create_dir(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(Error::io(path, "create the folder", e)),
    }
}

/// Returns the absolute path of a store's folder, without symbolic links.
///
/// # Errors
///
/// Where there is nothing at the path, says that the store is absent.
pub(crate) fn resolve_folder(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|e| match e.kind() {
        // As if the folder were there, without the file.
        ErrorKind::NotFound => Error::io(&path.join(DATA), "open", e),
        _ => Error::io(path, "open", e),
    })
}

/// Two bytes at an offset; zero beyond the end, which no caller asks for.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u16::from_le_bytes(*chunk))
}

/// Four bytes at an offset; zero beyond the end.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

/// Eight bytes at an offset; zero beyond the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// What is wrong at an offset of a file.
#[cold]
pub(crate) fn damage(
    path: &Path,
    offset: u64,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Damage {
    let (expected, found) = (expected.into(), found.into());
    Damage { path: path.to_owned(), offset, expected, found }
}

#[cold]
pub(crate) fn corrupt(
    path: &Path,
    offset: u64,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Error {
    Error::Corrupt(Box::new(damage(path, offset, expected, found)))
}
