//! The folder: its files by name, always through the folder that was opened.

use crate::error::{Error, Result};
use crate::layout::SEGMENT_ENDING;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    file: File,
}

/// A file of the folder.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) len: u64,
    /// Bytes of disk that it takes.
    pub(crate) taken: u64,
    pub(crate) is_file: bool,
}

impl Folder {
    /// Opens a folder, which is made if there is none.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(|e| Error::io("make the folder", path, e))?;
        let file = File::open(path).map_err(|e| Error::io("open the folder", path, e))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The folder, opened once more: for a lock of its own.
    pub(crate) fn open_again(&self) -> std::io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(self.file.as_fd(), ".", flags, Mode::empty())?.into())
    }

    /// An error of one of its files.
    pub(crate) fn error(&self, action: &'static str, name: &str, errno: Errno) -> Error {
        Error::io(action, self.path.join(name), errno.into())
    }

    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> rustix::io::Result<File> {
        // What somebody put there instead, a pipe for instance, must not be waited for.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(0o666);
        Ok(rustix::fs::openat(self.file.as_fd(), name, flags, mode)?.into())
    }

    pub(crate) fn remove(&self, name: &str) -> rustix::io::Result<()> {
        match rustix::fs::unlinkat(self.file.as_fd(), name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        rustix::fs::renameat(self.file.as_fd(), from, self.file.as_fd(), to)
    }

    /// Gives a file a name that no other one has.
    pub(crate) fn rename_new(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        let folder = self.file.as_fd();
        rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE)
    }

    pub(crate) fn stat(&self, name: &str) -> rustix::io::Result<Stat> {
        rustix::fs::statat(self.file.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// What the folder itself takes.
    pub(crate) fn own_bytes(&self) -> u64 {
        rustix::fs::fstat(self.file.as_fd())
            .map_or(4096, |stat| stat.st_size.max(4096).cast_unsigned())
    }

    /// All files of the folder.
    pub(crate) fn list(&self) -> Result<Vec<Entry>> {
        let fail = |errno| self.error("list", "", errno);
        let mut entries = Vec::new();
        for entry in Dir::read_from(self.file.as_fd()).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            // It may be gone by now.
            let Ok(stat) = self.stat(&name) else { continue };
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let taken = stat.st_blocks.cast_unsigned() * 512;
            entries.push(Entry { name, len: stat.st_size.cast_unsigned(), taken, is_file });
        }
        Ok(entries)
    }
}

/// The name of a segment.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:016x}{SEGMENT_ENDING}")
}

/// The number in the name of a segment.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SEGMENT_ENDING)?;
    let number = u64::from_str_radix(digits, 16).ok().filter(|number| *number != 0)?;
    (segment_name(number) == name).then_some(number)
}
