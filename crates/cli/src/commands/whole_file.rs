//! Files that appear when they are whole: written under a name of their own, then renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file that is being written. Dropping it removes it, and leaves what has its name.
#[derive(Debug)]
pub(crate) struct WholeFile {
    target: PathBuf,
    path: PathBuf,
    file: File,
    published: bool,
}

impl WholeFile {
    /// Begins a file under a name that begins with its own.
    pub(crate) fn begin(target: PathBuf) -> io::Result<Self> {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".partial-{}", std::process::id()));
        Self::begin_as(name.into(), target)
    }

    /// Begins a file under another name in the same folder. It has the mode of the file that it is
    /// to replace, if there is one, before it has any bytes: they may be secret.
    pub(crate) fn begin_as(path: PathBuf, target: PathBuf) -> io::Result<Self> {
        let replaced = match fs::metadata(&target) {
            Ok(found) => Some(found.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // One that is there was left by a process that was killed; numbers of processes come again.
        let _ = fs::remove_file(&path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if let Some(replaced) = &replaced {
            options.mode(replaced.mode() & 0o777);
        }
        let file = options.open(&path)?;
        let begun = Self { target, path, file, published: false };
        if let Some(replaced) = replaced {
            begun.file.set_permissions(replaced)?;
        }
        Ok(begun)
    }

    /// All was written: the file appears, and is there after a loss of power.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, &self.target)?;
        self.published = true;
        let folder = self.target.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.published {
            // It may not be there any more.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(target: &Path) -> io::Result<()> {
        let mut file = WholeFile::begin(target.to_owned())?;
        file.write_all(b"new")?;
        file.publish()
    }

    #[test]
    fn what_a_killed_process_left_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        let left = folder.path().join(format!("file.partial-{}", std::process::id()));
        fs::write(&left, b"left over, and longer").expect("a file");
        write(&target).expect("room");
        assert_eq!(fs::read(&target).expect("the file"), b"new");
        assert!(!left.exists());
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        fs::write(&target, b"old").expect("a file");
        for mode in [0o600, 0o444, 0o777] {
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).expect("a mode");
            write(&target).expect("room");
            let found = fs::metadata(&target).expect("the file").permissions().mode();
            assert_eq!(found & 0o7777, mode, "{found:o}");
        }
    }

    #[test]
    fn what_is_given_up_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        fs::write(&target, b"old").expect("a file");
        let mut file = WholeFile::begin(target.clone()).expect("a file");
        file.write_all(b"new").expect("room");
        drop(file);
        assert_eq!(fs::read(&target).expect("the file"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
