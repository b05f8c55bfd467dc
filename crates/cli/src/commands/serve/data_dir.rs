//! A folder that belongs to one server at a time.

use crate::outcome::Failure;
use crate::settings::Loaded;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The file that is locked.
const LOCK: &str = "nuthatch.lock";

/// What to do about a path that is of no use.
const ADVICE: &str = "name a folder, or a path where one can be created";

/// A folder that is this server's until this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "the lock holds as long as the file is open")]
pub(crate) struct DataDir(File);

impl DataDir {
    /// Creates the folder if there is none, for this user alone, and locks it.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found at the path, and what to do.
    pub(crate) fn take(path: &Path) -> Result<Self, String> {
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
                    "{name}: expected a folder of this server alone, found it taken{holder}; \
                     stop that server, or name another folder"
                ));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        // For people who find the folder taken.
        file.set_len(0).map_err(unusable)?;
        writeln!(file, "{}", std::process::id()).map_err(unusable)?;
        Ok(Self(file))
    }
}

/// The process that has the folder, as far as it said so.
fn holder(file: File) -> String {
    let mut text = String::new();
    let read = file.take(20).read_to_string(&mut text);
    match text.trim().parse::<u32>() {
        Ok(id) if read.is_ok() => format!(" by process {id}"),
        _ => String::new(),
    }
}

/// Locks the folder of `data-dir` for this server, if there is one.
pub(super) fn take_data_dir(loaded: &Loaded) -> Result<Option<DataDir>, Failure> {
    let Some(path) = &loaded.configuration.data_dir else { return Ok(None) };
    let named = loaded.source("data-dir").named();
    let taken = DataDir::take(path);
    taken.map(Some).map_err(|problem| Failure::Error(format!("{named}: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_is_made_for_this_user_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b");
        let _taken = DataDir::take(&path).expect("a new folder");
        let mode = path.metadata().expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_folder_is_taken_once_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DataDir::take(folder.path()).expect("a free folder");
        let text = DataDir::take(folder.path()).expect_err("it is taken");
        let found = format!("found it taken by process {}; stop", std::process::id());
        assert!(text.contains(&found), "{text}");
        drop(first);
        assert!(DataDir::take(folder.path()).is_ok(), "it is free again");
    }

    #[test]
    fn a_file_is_no_folder() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(DataDir::take(file.path()).is_err());
    }
}
