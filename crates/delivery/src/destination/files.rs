//! The folder of a destination: its path, and its objects.

use super::StoredObject;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns an absolute path without symbolic links and `..`. The last parts need not exist.
pub(super) fn resolve(folder: &Path) -> Result<PathBuf> {
    let failed = |e| Error::io(folder, "open", e);
    let absolute = std::path::absolute(folder).map_err(failed)?;
    for existing in absolute.ancestors() {
        match existing.canonicalize() {
            Ok(real) => {
                let rest = absolute.strip_prefix(existing).unwrap_or(Path::new(""));
                return Ok(if rest == Path::new("") { real } else { real.join(rest) });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(absolute)
}

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
        let (Ok(found), Ok(name)) = (entry.metadata(), entry.file_name().into_string()) else {
            continue;
        };
        if let Ok(modified) = found.modified() {
            objects.push(StoredObject { name, bytes: found.len(), modified });
        }
    }
    Ok(objects)
}

/// Fails if there is something else than a file at a path: opening a pipe would wait for a writer.
pub(super) fn check_regular(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(Error::Contents {
            place: path.display().to_string(),
            expected: "a regular file".to_owned(),
            found: "a folder, device, pipe or socket".to_owned(),
        }),
        // What else is wrong is reported when the file is read.
        _ => Ok(()),
    }
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, "remove", error)),
        _ => Ok(()),
    }
}

/// Returns the permissions of a file; those of any new file if it cannot be read.
pub(super) fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).map_or(0o666, |found| found.permissions().mode())
}

/// Removes the temporary files with which killed publishers would have replaced a file, as far as
/// that is possible.
pub(super) fn remove_temporary(folder: &Path, name: &str) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let file_name = entry.file_name();
        let rest = file_name.to_str().and_then(|found| found.strip_prefix(name));
        if rest.is_some_and(|rest| rest.starts_with('#')) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
