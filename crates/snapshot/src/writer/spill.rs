//! A nameless file for what does not fit in memory: bytes go in at the end and are read anywhere.

use super::temporary;
use crate::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name it has until it is unlinked.
pub(crate) const NAME: &str = "spill";

/// An unlinked temporary file. It vanishes with the process, however that ends.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    path: PathBuf,
    end: AtomicU64,
}

impl SpillFile {
    /// Creates the file in a directory, and unlinks it.
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        let (file, path) = temporary::create(directory, NAME, true)?;
        std::fs::remove_file(&path).map_err(|e| Error::io(&path, "unlink", e))?;
        Ok(Self { file, path, end: AtomicU64::new(0) })
    }

    /// Reserves room at the end and answers where it begins.
    pub(crate) fn reserve(&self, len: u64) -> u64 {
        self.end.fetch_add(len, Ordering::Relaxed)
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|e| Error::io(&self.path, "write a temporary file", e))
    }

    pub(crate) fn append(&self, bytes: &[u8]) -> Result<u64> {
        let offset = self.reserve(bytes.len() as u64);
        self.write_at(bytes, offset)?;
        Ok(offset)
    }

    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_exact_at(bytes, offset)
            .map_err(|e| Error::io(&self.path, "read a temporary file", e))
    }
}
