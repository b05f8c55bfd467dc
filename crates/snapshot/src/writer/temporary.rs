//! Temporary files beside the result, and what becomes of those whose process died.
//!
//! They are named `.NAME.nut.tmp-PID-N` and locked as long as somebody writes them. A process ID
//! tells less than the lock: it may be another machine's, another container's, or used again.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// More of a long name would make the temporary file's too long.
const NAME_LEN: usize = 200;

/// Creates a file with a name that is not in use, and locks it. Nobody but the owner may open a
/// private one.
pub(crate) fn create(directory: &Path, name: &str, private: bool) -> Result<(File, PathBuf)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let (start, process) = (start_of_names(name), std::process::id());
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{start}{process}-{number}"));
        let io = |e| Error::io(&path, "create a temporary file", e);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(if private { 0o600 } else { 0o666 });
        match options.open(&path) {
            Ok(file) if is_locked_and_there(&file).map_err(io)? => return Ok((file, path)),
            // Somebody took it for a leftover before it was locked.
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io(e)),
        }
    }
}

fn is_locked_and_there(file: &File) -> std::io::Result<bool> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // Where there are no locks, nobody removes leftovers either.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file.metadata()?.nlink() > 0),
    }
}

/// Removes the temporary files of builds of this name that were killed. What cannot be removed
/// stays: it is in nobody's way.
pub(crate) fn remove_leftovers(directory: &Path, name: &str) {
    let start = start_of_names(name);
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_file = || entry.file_type().is_ok_and(|file_type| file_type.is_file());
        if !entry.file_name().to_str().is_some_and(|name| is_temporary(name, &start)) || !is_file()
        {
            continue;
        }
        let path = entry.path();
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            // The lock is held until the name is gone, lest somebody takes it into use.
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn start_of_names(name: &str) -> String {
    let name = name.strip_suffix(".nut").unwrap_or(name);
    format!(".{}.nut.tmp-", &name[..name.floor_char_boundary(NAME_LEN)])
}

fn is_temporary(name: &str, start: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let numbers = name.strip_prefix(start).and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_the_same_name_are_told_to_be_such() {
        let start = start_of_names("users.nut");
        assert!(is_temporary(".users.nut.tmp-17-0", &start));
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
            assert!(!is_temporary(other, &start), "{other}");
        }
    }

    #[test]
    fn leftovers_go_and_files_in_use_stay() -> std::result::Result<(), Box<dyn std::error::Error>> {
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
        assert!(path(".users.nut.tmp-1-1").exists(), "no file");
        assert!(kept.iter().all(|name| path(name).exists()), "other names");
        assert!(!path(".users.nut.tmp-1-0").exists(), "a leftover");
        Ok(())
    }

    #[test]
    fn long_names_make_temporary_files_that_can_be() -> Result<()> {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["n".repeat(255), "ö".repeat(127)] {
            create(directory.path(), &name, true)?;
        }
        Ok(())
    }
}
