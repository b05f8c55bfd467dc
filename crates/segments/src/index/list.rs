//! All indexes that a process opened for a folder, in order.
//!
//! A thread may read a replaced index without a lock, so no index is dropped before the folder is
//! closed. The process that replaces an index frees its pages; an entry in this list and a range of
//! addresses remain.

use super::Index;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Blocks of the list. Each is twice as long as the one before it: 2^32 indexes.
const BLOCKS: usize = 32;

/// A list that only grows and whose entries never move.
pub(crate) struct IndexList {
    first: OnceLock<Index>,
    blocks: [OnceLock<Box<[OnceLock<Index>]>>; BLOCKS],
    /// The number of indexes; the last one is in use.
    count: AtomicUsize,
    adopting: Mutex<()>,
}

/// Returns the block of the entry with a number from 1 on, and its position in the block.
#[inline]
fn position(number: usize) -> (usize, usize) {
    let block = number.ilog2() as usize;
    (block, number - (1 << block))
}

impl IndexList {
    pub(crate) fn new() -> Self {
        let blocks = [const { OnceLock::new() }; BLOCKS];
        Self {
            first: OnceLock::new(),
            blocks,
            count: AtomicUsize::new(0),
            adopting: Mutex::default(),
        }
    }

    /// Returns the index that was opened last.
    #[inline]
    pub(crate) fn latest(&self) -> Option<&Index> {
        let number = self.count.load(Ordering::Acquire);
        if number <= 1 {
            // The usual case: no index was replaced.
            return self.first.get();
        }
        self.later(number)
    }

    fn later(&self, number: usize) -> Option<&Index> {
        let (block, at) = position(number);
        self.blocks.get(block)?.get()?.get(at)?.get()
    }

    /// Makes all threads use the index that `open` returns, unless it returns none. `open` gets the
    /// latest index. One thread runs it at a time.
    ///
    /// # Errors
    ///
    /// Returns the error of `open`.
    pub(crate) fn adopt<E>(
        &self,
        open: impl FnOnce(Option<&Index>) -> Result<Option<Index>, E>,
    ) -> Result<Option<&Index>, E> {
        let _alone = self.adopting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = open(self.latest())? else { return Ok(self.latest()) };
        let number = self.count.load(Ordering::Acquire) + 1;
        let (block, at) = position(number);
        let Some(block) = self.blocks.get(block) else { return Ok(None) };
        let place = if number == 1 {
            &self.first
        } else {
            &block.get_or_init(|| (0..number - at).map(|_| OnceLock::new()).collect())[at]
        };
        let _ = place.set(index);
        self.count.store(number, Ordering::Release);
        Ok(place.get())
    }
}
