//! Dictionaries as files, in zstd's format. `zstd -D FILE` uses them.

use crate::dictionaries::Dictionaries;
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::file::{EXTENSION, read_dictionary, sync, write_file};
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

impl Dictionaries {
    /// Writes each dictionary to `folder` as `ID.zdict`, and removes the files of dictionaries that
    /// are not in the set; call [`Self::load`] before. A file is written under a temporary name,
    /// synced and renamed; files that have the same content are not written again. Only the user of
    /// the process can read a new file, because dictionaries contain parts of values. One thread at
    /// a time may save to a folder.
    ///
    /// Files are removed only after all others are written. Values that need a dictionary can be
    /// stored durably once this returns.
    ///
    /// # Errors
    ///
    /// Returns [`Error::File`].
    pub fn save(&self, folder: &Path) -> Result<()> {
        let all = self.all();
        for dictionary in &all {
            write(folder, dictionary)?;
        }
        for (id, path) in files(folder)? {
            if !all.iter().any(|dictionary| dictionary.id() == id) {
                fs::remove_file(&path).map_err(|source| Error::File {
                    path,
                    operation: "remove",
                    source,
                })?;
            }
        }
        sync(folder)
    }

    /// Adds the dictionaries that [`Self::save`] wrote to `folder`. No group uses them until a
    /// [`Trainer`](crate::Trainer) adopts them. Returns their number.
    ///
    /// # Errors
    ///
    /// Returns [`Error::File`] for a file that cannot be read, or that is not the dictionary that
    /// its name says, and the errors of [`Self::add`].
    pub fn load(&self, folder: &Path) -> Result<usize> {
        let files = files(folder)?;
        for (id, path) in &files {
            let bytes = read_dictionary(path)?;
            let invalid = |message: String| {
                let source = io::Error::new(io::ErrorKind::InvalidData, message);
                Error::File { path: path.clone(), operation: "load", source }
            };
            let dictionary = self.add(&bytes).map_err(|error| match error {
                Error::NotADictionary { .. } | Error::DuplicateId { .. } => {
                    invalid(error.to_string())
                }
                error => error,
            })?;
            if dictionary.id() != *id {
                let found = dictionary.id();
                return Err(invalid(format!("expected the id {id} as in its name, found {found}")));
            }
        }
        Ok(files.len())
    }
}

/// Returns the files with dictionaries in a folder, by id.
fn files(folder: &Path) -> Result<Vec<(NonZeroU32, std::path::PathBuf)>> {
    let failed = |source| Error::File { path: folder.to_owned(), operation: "list", source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_dictionary = path.extension().is_some_and(|extension| extension == EXTENSION);
        let id = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        files.extend(id.filter(|_| is_dictionary).map(|id| (id, path)));
    }
    files.sort();
    Ok(files)
}

fn write(folder: &Path, dictionary: &Arc<Dictionary>) -> Result<()> {
    let path = folder.join(format!("{}.{EXTENSION}", dictionary.id()));
    // A file with the same id can be of another set that was not loaded.
    if read_dictionary(&path).is_ok_and(|found| found == dictionary.as_bytes()) {
        return Ok(());
    }
    write_file(&path, dictionary.as_bytes())
}
