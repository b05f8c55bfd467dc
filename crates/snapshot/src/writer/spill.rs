//! Spill files: unlinked temporary files for data that exceeds the memory budget.

use super::temporary;
use crate::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of a spill file until it is unlinked.
pub(crate) const NAME: &str = "spill";

/// An unlinked temporary file. The system removes it when the process ends.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    /// The path that the file had, for errors.
    path: PathBuf,
    /// Offset after the last reserved byte.
    end: AtomicU64,
}

impl SpillFile {
    /// Creates a file in a folder and unlinks it.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let (file, path) = temporary::create(folder, NAME, true)?;
        std::fs::remove_file(&path).map_err(|e| Error::io(&path, "unlink", e))?;
        Ok(Self { file, path, end: AtomicU64::new(0) })
    }

    /// Reserves `len` bytes at the end. Returns their offset.
    pub(crate) fn reserve(&self, len: u64) -> u64 {
        self.end.fetch_add(len, Ordering::Relaxed)
    }

    /// Writes bytes at an offset.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|e| Error::io(&self.path, "write a temporary file", e))
    }

    /// Appends bytes. Returns their offset.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<u64> {
        let offset = self.reserve(bytes.len() as u64);
        self.write_at(bytes, offset)?;
        Ok(offset)
    }

    /// Reads bytes at an offset. Fails if the file ends before them.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_exact_at(bytes, offset)
            .map_err(|e| Error::io(&self.path, "read a temporary file", e))
    }
}
