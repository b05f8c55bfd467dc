//! A folder that belongs to one server at a time.

use crate::commands::Failure;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The file that is locked.
const LOCK: &str = "nuthatch.lock";

/// A folder that is this server's until this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "the lock holds as long as the file is open")]
pub(crate) struct DataDir(File);

impl DataDir {
    /// Makes the folder if it is missing, for this user alone, and takes it.
    pub(crate) fn take(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let failure = |error: std::io::Error| Failure::Error(format!("{name}: {error}"));
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failure)?;
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path.join(LOCK)).map_err(failure)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text =
                    format!("{name}: expected a folder of this server alone, found it taken");
                return Err(Failure::Error(format!("{text}{}", holder(file))));
            }
            Err(TryLockError::Error(error)) => return Err(failure(error)),
        }
        // For people who find the folder taken.
        file.set_len(0).map_err(failure)?;
        writeln!(file, "{}", std::process::id()).map_err(failure)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_is_made_for_this_user_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b");
        let _taken = DataDir::take(&path).ok().expect("a new folder");
        let mode = path.metadata().expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_folder_is_taken_once_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DataDir::take(folder.path()).ok().expect("a free folder");
        let Err(Failure::Error(text)) = DataDir::take(folder.path()) else {
            panic!("it is taken twice")
        };
        assert!(text.ends_with(&format!("found it taken by process {}", std::process::id())));
        drop(first);
        assert!(DataDir::take(folder.path()).is_ok(), "it is free again");
    }

    #[test]
    fn a_file_is_no_folder() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(DataDir::take(file.path()).is_err());
    }
}
