//! Temporary files, and the removal of those that killed processes left behind.
//!
//! A temporary file is named `.NAME.nut.tmp-PID-N` and locked while a process writes it. The lock
//! shows that the file is in use; the process ID does not, because it may belong to another machine
//! or container, or may be reused.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of bytes of a name that are part of the temporary file's name, which is limited
/// to 255 bytes.
const MAX_NAME_LEN: usize = 200;

/// Creates a file with an unused name in a folder, and locks it. Only the owner may open a private
/// file.
pub(crate) fn create(folder: &Path, name: &str, private: bool) -> Result<(File, PathBuf)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let (prefix, process) = (name_prefix(name), std::process::id());
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{prefix}{process}-{number}"));
        let io = |e| Error::io(&path, "create a temporary file", e);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(if private { 0o600 } else { 0o666 });
        match options.open(&path) {
            Ok(file) if lock_linked(&file).map_err(io)? => return Ok((file, path)),
            // Another process removed it as a leftover before it was locked.
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io(e)),
        }
    }
}

/// Locks a file. Returns whether the lock was free and the file still has a name.
fn lock_linked(file: &File) -> std::io::Result<bool> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // Without support for locks, no process removes leftovers.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file.metadata()?.nlink() > 0),
    }
}

/// Removes the temporary files that killed builds of this name left in a folder. Ignores errors,
/// because leftovers do not interfere with a build.
pub(crate) fn remove_leftovers(folder: &Path, name: &str) {
    let prefix = name_prefix(name);
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_file = || entry.file_type().is_ok_and(|file_type| file_type.is_file());
        if !entry.file_name().to_str().is_some_and(|name| is_temporary(name, &prefix)) || !is_file()
        {
            continue;
        }
        let path = entry.path();
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            // Unlinked while the lock is held, so that no process starts to use the file.
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Returns the prefix of the names of temporary files, up to the process ID.
fn name_prefix(name: &str) -> String {
    let name = name.strip_suffix(".nut").unwrap_or(name);
    format!(".{}.nut.tmp-", &name[..name.floor_char_boundary(MAX_NAME_LEN)])
}

/// Returns whether a file name has this prefix, a process ID and a number.
fn is_temporary(name: &str, prefix: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let numbers = name.strip_prefix(prefix).and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_the_same_name_are_recognized() {
        let prefix = name_prefix("users.nut");
        assert!(is_temporary(".users.nut.tmp-17-0", &prefix));
        for other in [
            "users.nut",
            ".users.nut.tmp-17",
            ".users.nut.tmp-17-",
            ".users.nut.tmp--1",
            ".users.nut.tmp-17-0.bak",
            ".users.nut.tmp-17-0-0",
            ".users2.nut.tmp-17-0",
            "users.nut.tmp-17-0",
        ] {
            assert!(!is_temporary(other, &prefix), "{other}");
        }
    }

    #[test]
    fn leftovers_are_removed_and_files_in_use_are_kept()
    -> std::result::Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let path = |name: &str| directory.path().join(name);
        let (_in_use, used) = create(directory.path(), "users.nut", false)?;
        let kept = ["users.nut", ".users.nut.tmp-x-0", ".other.nut.tmp-1-0"];
        for name in kept.iter().chain(&[".users.nut.tmp-1-0"]) {
            std::fs::write(path(name), "")?;
        }
        std::fs::create_dir(path(".users.nut.tmp-1-1"))?;
        remove_leftovers(directory.path(), "users.nut");
        assert!(used.exists(), "in use");
        assert!(path(".users.nut.tmp-1-1").exists(), "a folder");
        assert!(kept.iter().all(|name| path(name).exists()), "other names");
        assert!(!path(".users.nut.tmp-1-0").exists(), "a leftover");
        Ok(())
    }

    #[test]
    fn long_names_make_valid_temporary_names() -> Result<()> {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["n".repeat(255), "ö".repeat(127)] {
            create(directory.path(), &name, true)?;
        }
        Ok(())
    }
}
