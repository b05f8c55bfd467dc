//! A file that appears under its name only once it is whole: temporary file, sync, rename.

use super::{spill, temporary};
use crate::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file in the making. Dropped before it is published, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl NewFile {
    /// Starts a file beside the path it is to have.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let Some(name) = path.file_name() else {
            let source = std::io::ErrorKind::InvalidInput.into();
            return Err(Error::io(path, "create (the path names no file)", source));
        };
        if path.is_dir() {
            let source = std::io::ErrorKind::IsADirectory.into();
            return Err(Error::io(path, "create", source));
        }
        let (directory, name) = (directory_of(path), name.to_string_lossy());
        temporary::remove_leftovers(directory, &name);
        temporary::remove_leftovers(directory, spill::NAME);
        let (file, temporary) = temporary::create(directory, &name)?;
        Ok(Self { file, temporary: Some(temporary), path: path.to_owned() })
    }

    /// The directory the file is in.
    pub(crate) fn directory(&self) -> &Path {
        directory_of(&self.path)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| Error::io(&self.path, "write", e))
    }

    /// Writes the header last, makes everything durable, and renames.
    pub(crate) fn publish(mut self, header: &[u8], len: u64) -> Result<()> {
        let io = |act| {
            let path = self.path.clone();
            move |e| Error::io(&path, act, e)
        };
        self.write_at(header, 0)?;
        self.file.set_len(len).map_err(io("set the length"))?;
        self.file.sync_all().map_err(io("sync"))?;
        if let Some(temporary) = &self.temporary {
            std::fs::rename(temporary, &self.path).map_err(io("rename"))?;
        }
        self.temporary = None;
        let directory = self.directory();
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|e| Error::io(directory, "sync the directory", e))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing is lost when this fails: the next build takes another name.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
