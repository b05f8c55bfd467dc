//! Lists and removes the objects of a folder.

use super::StoredObject;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;

/// Lists the files of a folder, which need not exist.
pub(super) fn list(folder: &Path) -> Result<Vec<StoredObject>> {
    let failed = |e| Error::io(folder, "list", e);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut objects = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        // Another publisher may remove it meanwhile. Its own names are UTF-8.
        let modified = entry.metadata().and_then(|found| found.modified());
        if let (Ok(modified), Ok(name)) = (modified, entry.file_name().into_string()) {
            objects.push(StoredObject { name, modified });
        }
    }
    Ok(objects)
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, "remove", error)),
        _ => Ok(()),
    }
}
