//! The byte budget of a folder.

use crate::error::{Error, Result};
use crate::layout::BLOCK;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that count for the manifest, the next manifest and the lock file.
const SMALL_FILES_BYTES: u64 = 3 * BLOCK as u64;
/// Bytes that removal logs leave available, for names that enlarge the folder.
const FOLDER_MARGIN: u64 = 2 * BLOCK as u64;

/// The byte budget of a folder.
#[derive(Debug)]
pub(crate) struct Budget {
    max_bytes: u64,
    /// Bytes of files that do not belong to the tier.
    foreign: u64,
    /// Bytes of everything but item files and removal logs.
    fixed: AtomicU64,
    /// Bytes of item files and removal logs, until their last user has closed them: only then the
    /// system frees the space of a removed file.
    files: AtomicU64,
    /// Bytes that item files leave available to removal logs.
    log_headroom: AtomicU64,
    /// Bytes of removal logs that may exist although no item file does.
    min_log: AtomicU64,
}

impl Budget {
    pub(crate) fn new(max_bytes: u64, foreign: u64) -> Self {
        Self {
            max_bytes,
            foreign,
            fixed: AtomicU64::new(0),
            files: AtomicU64::new(0),
            log_headroom: AtomicU64::new(0),
            min_log: AtomicU64::new(0),
        }
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    pub(crate) fn used(&self) -> u64 {
        self.fixed.load(Ordering::Relaxed) + self.files.load(Ordering::Relaxed)
    }

    /// Updates the bytes of everything but item files and removal logs. One more name may enlarge
    /// the folder by a block.
    pub(crate) fn set_folder_bytes(&self, bytes: u64) {
        let folder = bytes.max(BLOCK as u64) + BLOCK as u64;
        self.fixed.store(SMALL_FILES_BYTES + folder + self.foreign, Ordering::Relaxed);
    }

    /// Sets the bytes that item files leave available to removal logs, and the maximum length of
    /// the one that exists without item files.
    pub(crate) fn set_log_headroom(&self, headroom: u64, log_len: u64) {
        self.log_headroom.store(headroom, Ordering::Relaxed);
        self.min_log.store(charge_of(log_len), Ordering::Relaxed);
    }

    /// Returns whether removal logs have less than their headroom available.
    pub(crate) fn lacks_headroom(&self) -> bool {
        self.used() + self.log_headroom.load(Ordering::Relaxed) > self.max_bytes
    }

    /// Charges an existing file, also if it exceeds the budget.
    pub(crate) fn charge(self: &Arc<Self>, len: u64) -> Charge {
        self.files.fetch_add(charge_of(len), Ordering::Relaxed);
        Charge { len: AtomicU64::new(len), budget: Arc::clone(self) }
    }

    /// Charges an item file of `len` bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`], or [`Error::TooLong`] if the file does not fit even if all
    /// others are removed.
    pub(crate) fn charge_items(self: &Arc<Self>, len: u64) -> Result<Charge> {
        let (needed, headroom) = (charge_of(len), self.log_headroom.load(Ordering::Relaxed));
        let taken = self.fixed.load(Ordering::Relaxed) + self.min_log.load(Ordering::Relaxed);
        let max = self.max_bytes.saturating_sub(taken + headroom);
        if needed > max {
            return Err(Error::TooLong { what: "record", len: needed, max });
        }
        self.reserve(needed, headroom)?;
        Ok(Charge { len: AtomicU64::new(len), budget: Arc::clone(self) })
    }

    /// Returns whether an item file of `len` bytes fits, or can never fit.
    pub(crate) fn has_room_for_items(&self, len: u64) -> bool {
        let headroom = self.log_headroom.load(Ordering::Relaxed);
        let taken = self.fixed.load(Ordering::Relaxed) + self.min_log.load(Ordering::Relaxed);
        let needed = charge_of(len) + headroom;
        self.used() + needed <= self.max_bytes || taken + needed > self.max_bytes
    }

    /// Charges a removal log of `len` bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`].
    pub(crate) fn charge_log(self: &Arc<Self>, len: u64) -> Result<Charge> {
        self.reserve(charge_of(len), FOLDER_MARGIN)?;
        Ok(Charge { len: AtomicU64::new(len), budget: Arc::clone(self) })
    }

    /// Adds bytes if `spare` bytes stay available. Several threads reserve at the same time.
    fn reserve(&self, needed: u64, spare: u64) -> Result<()> {
        let max = self.max_bytes.saturating_sub(self.fixed.load(Ordering::Relaxed) + spare);
        let add = |files: u64| Some(files + needed).filter(|files| *files <= max);
        match self.files.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(()),
            Err(files) => {
                Err(Error::BudgetReached { needed, available: max.saturating_sub(files) })
            }
        }
    }
}

/// Returns the bytes that a file of a length counts: with a block for the metadata of the
/// filesystem.
fn charge_of(len: u64) -> u64 {
    len.next_multiple_of(BLOCK as u64) + BLOCK as u64
}

/// The bytes of a file that count towards the budget, until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    len: AtomicU64,
    budget: Arc<Budget>,
}

impl Charge {
    /// Returns the length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Changes the length, also if the budget is exceeded.
    pub(crate) fn set_len(&self, len: u64) {
        let old = self.len.swap(len, Ordering::Relaxed);
        self.budget.files.fetch_add(charge_of(len), Ordering::Relaxed);
        self.budget.files.fetch_sub(charge_of(old), Ordering::Relaxed);
    }

    /// Sets the length of a removal log that grows.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`].
    pub(crate) fn grow_log(&self, len: u64) -> Result<()> {
        let old = self.len();
        if len > old {
            self.budget.reserve(charge_of(len) - charge_of(old), FOLDER_MARGIN)?;
            self.len.store(len, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.files.fetch_sub(charge_of(self.len()), Ordering::Relaxed);
    }
}
