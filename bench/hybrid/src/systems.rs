//! What the systems have in common.

use crate::workload::{KEY_LEN, Workload};
use nuthatch_bench::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// What a system may use.
pub(crate) struct Limits {
    /// Bytes of memory.
    pub(crate) memory: u64,
    /// Bytes of disk space.
    pub(crate) disk: u64,
    /// A folder that does not exist.
    pub(crate) folder: PathBuf,
    /// The keys and values, with which a system checks what it has read.
    pub(crate) workload: Arc<Workload>,
}

/// An open system, which threads share.
pub(crate) trait System: Sync {
    /// Creates what one thread needs.
    fn session(&self) -> Result<Box<dyn Session + '_>>;

    /// Waits until the values that were stored first are where gets find them.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

/// The operations of one thread.
pub(crate) trait Session {
    /// Checks the value of a key. Returns `None` if the key is missing, and otherwise whether the
    /// value is correct.
    fn get(&mut self, number: u32) -> Result<Option<bool>>;

    /// Stores a value after a miss.
    fn set(&mut self, number: u32, value: &[u8]) -> Result<()>;

    /// Stores a value before the measurement. Waits if the system would otherwise drop it.
    fn fill(&mut self, number: u32, value: &[u8]) -> Result<()> {
        self.set(number, value)
    }
}

/// Returns the key of a number.
pub(crate) fn key(number: u32) -> [u8; KEY_LEN] {
    u64::from(number).to_le_bytes()
}
