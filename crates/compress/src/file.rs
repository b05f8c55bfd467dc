//! Reads and writes one file of a dictionary.

use crate::dictionary::MAX_DICTIONARY_BYTES;
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The extension of files with dictionaries.
pub(crate) const EXTENSION: &str = "zdict";
/// The extension of files that are being written.
pub(crate) const PARTIAL: &str = "partial";

/// Reads a file with a dictionary, and nothing beyond [`MAX_DICTIONARY_BYTES`].
///
/// # Errors
///
/// Returns [`Error::File`] if the file cannot be read or is too long.
pub fn read_dictionary(path: &Path) -> Result<Vec<u8>> {
    let failed = |operation, source| Error::File { path: path.to_owned(), operation, source };
    let file = File::open(path).map_err(|error| failed("open", error))?;
    let mut bytes = Vec::new();
    let limit = MAX_DICTIONARY_BYTES as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(|error| failed("read", error))?;
    if bytes.len() > MAX_DICTIONARY_BYTES {
        let message = "expected a dictionary of at most 16 MiB, found a longer file";
        return Err(failed("read", io::Error::new(io::ErrorKind::InvalidData, message)));
    }
    Ok(bytes)
}

/// Replaces a file: writes a new one that only the user of the process can read, syncs and renames
/// it. The folder is not synced.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = path.with_extension(PARTIAL);
    let failed = |operation, source| Error::File { path: partial.clone(), operation, source };
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&partial).map_err(|error| failed("create", error))?;
    file.write_all(bytes).map_err(|error| failed("write", error))?;
    file.sync_all().map_err(|error| failed("sync", error))?;
    fs::rename(&partial, path).map_err(|error| failed("rename", error))
}

/// Makes the names of new files in a folder durable.
pub(crate) fn sync(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|file| file.sync_all());
    synced.map_err(|source| Error::File { path: folder.to_owned(), operation: "sync", source })
}
