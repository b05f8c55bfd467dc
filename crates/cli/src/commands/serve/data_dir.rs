//! The folder of `data-dir`, which one server at a time can use.

use crate::outcome::Failure;
use crate::settings::LoadedSettings;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The name of the lock file.
const LOCK: &str = "nuthatch.lock";

/// The advice for a path that cannot be used.
const ADVICE: &str = "name a folder, or a path where one can be created";

/// A lock on a folder. Dropping it releases the folder.
#[derive(Debug)]
#[expect(dead_code, reason = "the lock holds as long as the file is open")]
pub(crate) struct DataDir(File);

impl DataDir {
    /// Creates the folder if there is none, for this user alone, and locks it.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found at the path, and what to do.
    pub(crate) fn lock(path: &Path) -> Result<Self, String> {
        let name = path.display();
        if path.metadata().is_ok_and(|found| !found.is_dir()) {
            return Err(format!("{name}: expected a folder, found a file; {ADVICE}"));
        }
        let failure = |what: &str, error: &std::io::Error| {
            format!("{name}: {what}: {error}; {ADVICE}, or allow this user to write here")
        };
        let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.map_err(|error| failure("the folder cannot be created", &error))?;
        let unusable = |error| failure(&format!("{LOCK} in it cannot be written"), &error);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path.join(LOCK)).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = holder(file);
                return Err(format!(
                    "{name}: expected a folder that no server uses, found one in use{holder}; \
                     stop that server, or name another folder"
                ));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        // For the error message of other servers.
        file.set_len(0).map_err(unusable)?;
        writeln!(file, "{}", std::process::id()).map_err(unusable)?;
        Ok(Self(file))
    }
}

/// Returns the process that has locked the folder, if the lock file names it.
fn holder(file: File) -> String {
    let mut text = String::new();
    let read = file.take(20).read_to_string(&mut text);
    match text.trim().parse::<u32>() {
        Ok(id) if read.is_ok() => format!(" by process {id}"),
        _ => String::new(),
    }
}

/// Locks the folder of `data-dir` for this server, if there is one.
pub(super) fn lock_data_dir(loaded: &LoadedSettings) -> Result<Option<DataDir>, Failure> {
    let Some(path) = &loaded.settings.data_dir else { return Ok(None) };
    let named = loaded.source("data-dir").named();
    let locked = DataDir::lock(path);
    locked.map(Some).map_err(|problem| Failure::Error(format!("{named}: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_folder_is_only_for_this_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b");
        let _data_dir = DataDir::lock(&path).expect("a new folder");
        let mode = path.metadata().expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_locked_folder_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DataDir::lock(folder.path()).expect("a free folder");
        let text = DataDir::lock(folder.path()).expect_err("a locked folder");
        let found = format!("found one in use by process {}; stop", std::process::id());
        assert!(text.contains(&found), "{text}");
        drop(first);
        assert!(DataDir::lock(folder.path()).is_ok(), "it is free again");
    }

    #[test]
    fn a_file_is_no_folder() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(DataDir::lock(file.path()).is_err());
    }
}
