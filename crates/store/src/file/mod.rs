//! The file of a store, read without LMDB, which trusts its content. Everything is checked before
//! it is used.
//!
//! - `first`: the file of an empty store
//! - `layout`: offsets
//! - `meta`: the two meta pages
//! - `tree`: the record of a tree
//! - `page`: the entries of one page
//! - `walk`: verification of all pages
//! - `check`: the check before LMDB opens the file

pub(crate) mod check;
pub(crate) mod first;
pub(crate) mod layout;
pub(crate) mod meta;
pub(crate) mod page;
pub(crate) mod tree;
pub(crate) mod walk;

use crate::error::{Damage, Error};
use crate::file_names::DATA;
use crate::options::Options;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Creates the folder of a store, if the options allow it and it does not exist.
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
/// If the path does not exist, the error says that it has no store.
pub(crate) fn resolve_folder(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|e| match e.kind() {
        // The same error as for a folder without the file.
        ErrorKind::NotFound => Error::io(&path.join(DATA), "open", e),
        _ => Error::io(path, "open", e),
    })
}

/// Reads a little-endian integer of two bytes; zero beyond the end.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u16::from_le_bytes(*chunk))
}

/// Reads a little-endian integer of four bytes; zero beyond the end.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

/// Reads a little-endian integer of eight bytes; zero beyond the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// Describes damage at an offset of a file.
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

/// Rounds up to a multiple of 64 KiB, the largest page size.
pub(crate) fn page_multiple(bytes: u64) -> u64 {
    bytes.next_multiple_of(64 << 10)
}
