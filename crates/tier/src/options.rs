//! Options of a tier.

use crate::disk::{Disk, SystemDisk};
use crate::error::{Error, Result};
use crate::layout::{BLOCK, MAX_BATCH_LEN, MAX_FILE_LEN, MIN_FILE_LEN};
use nuthatch_clock::{Clock, SystemClock};
use std::fmt;
use std::sync::Arc;

/// Options of [`Tier::open`](crate::Tier::open).
#[derive(Clone)]
pub struct Options {
    /// Maximum bytes of all files in the folder together, with the folder itself: at least two item
    /// files and 64 KiB.
    pub max_bytes: u64,
    /// Length of an item file: 64 KiB to 64 MiB, a multiple of 4 KiB. 16 MiB and more are
    /// recommended. A record that does not fit gets a longer file of its own.
    pub file_len: u64,
    /// Maximum length of a batch, which is written at once: 4 KiB to 4 MiB, a multiple of 4 KiB,
    /// and at most a quarter of `file_len`.
    pub batch_len: usize,
    /// Whether to read and write without the page cache, if the filesystem supports it.
    pub direct_io: bool,
    /// The seed of the hash of keys for a new folder; random if it is `None`. An existing folder
    /// keeps its seed: see [`Tier::hash_seed`](crate::Tier::hash_seed).
    pub hash_seed: Option<u64>,
    /// The source of time for the ages of files.
    pub clock: Arc<dyn Clock>,
    /// The disk.
    pub disk: Arc<dyn Disk>,
}

impl Options {
    /// Returns options with a budget: files of 64 MiB, or less if the budget is below 4 GiB.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        let file_len = (max_bytes / 64).clamp(MIN_FILE_LEN, MAX_FILE_LEN);
        let file_len = file_len - file_len % BLOCK as u64;
        let batch_len = (file_len / 4).min(1 << 20);
        Self {
            max_bytes,
            file_len,
            batch_len: (batch_len - batch_len % BLOCK as u64) as usize,
            direct_io: true,
            hash_seed: None,
            clock: Arc::new(SystemClock),
            disk: Arc::new(SystemDisk),
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Options`].
    pub(crate) fn check(&self) -> Result<()> {
        let fail =
            |option, expected: String, found| Err(Error::Options { option, expected, found });
        let block = BLOCK as u64;
        let is_file_len = (MIN_FILE_LEN..=MAX_FILE_LEN).contains(&self.file_len);
        if !is_file_len || !self.file_len.is_multiple_of(block) {
            let expected = format!("{MIN_FILE_LEN} to {MAX_FILE_LEN} bytes, a multiple of {block}");
            return fail("file_len", expected, self.file_len);
        }
        let max_batch = (MAX_BATCH_LEN as u64).min(self.file_len / 4);
        let batch_len = self.batch_len as u64;
        if !(block..=max_batch).contains(&batch_len) || !batch_len.is_multiple_of(block) {
            let expected = format!("{block} to {max_batch} bytes, a multiple of {block}");
            return fail("batch_len", expected, batch_len);
        }
        let min_bytes = 2 * self.file_len + (64 << 10);
        if self.max_bytes < min_bytes {
            let expected = format!("at least {min_bytes} bytes (two item files and 64 KiB)");
            return fail("max_bytes", expected, self.max_bytes);
        }
        Ok(())
    }

    /// Returns the number of slots for item files.
    pub(crate) fn slots(&self) -> usize {
        let files = usize::try_from(self.max_bytes / self.file_len).unwrap_or(usize::MAX);
        files.clamp(16, 1 << 24).next_power_of_two()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("max_bytes", &self.max_bytes)
            .field("file_len", &self.file_len)
            .field("batch_len", &self.batch_len)
            .field("direct_io", &self.direct_io)
            .field("hash_seed", &self.hash_seed)
            .finish_non_exhaustive()
    }
}
