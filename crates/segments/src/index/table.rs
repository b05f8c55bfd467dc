//! The table of segments. Rows change only under the table lock. Any thread may read the number in
//! a row at any time.

use crate::checksum::checksum;
use crate::layout::{index, slot as at};
use crate::map::Words;
use std::sync::atomic::{AtomicU64, Ordering};

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The number in the name of the file.
    pub(crate) file_number: u64,
    /// Bytes that count towards the limit.
    pub(crate) charged: u64,
    pub(crate) state: State,
    /// In the main eviction queue: has records that were moved, or was requeued, because they were
    /// used or pinned.
    pub(crate) in_main_queue: bool,
    /// Not all of its parts are in the index yet.
    pub(crate) is_partly_indexed: bool,
    /// Segments with lower values are evicted first.
    pub(crate) eviction_order: u64,
}

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Writing,
    Sealed,
}

impl Row {
    pub(crate) const FREE: Self = Self {
        file_number: 0,
        charged: 0,
        state: State::Free,
        in_main_queue: false,
        is_partly_indexed: false,
        eviction_order: 0,
    };

    fn words(&self) -> [u64; 4] {
        let state = match self.state {
            State::Free => at::FREE,
            State::Writing => at::WRITING,
            State::Sealed => at::SEALED,
        };
        let in_main_queue = if self.in_main_queue { at::MAIN_QUEUE } else { 0 };
        let is_partly_indexed = if self.is_partly_indexed { at::PARTLY_INDEXED } else { 0 };
        [
            self.file_number,
            self.charged,
            state | in_main_queue | is_partly_indexed,
            self.eviction_order,
        ]
    }
}

/// Returns the checksum of a row.
fn check(slot: u32, words: &[u64; 4]) -> u64 {
    let mut bytes = [0; 40];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes[32..].copy_from_slice(&u64::from(slot).to_le_bytes());
    // A row of zeros is free.
    if *words == [0; 4] { 0 } else { checksum(&bytes) }
}

/// The table of an index.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    words: &'a Words,
    pub(crate) slots: u32,
}

impl<'a> Table<'a> {
    pub(crate) fn new(words: &'a Words, slots: u32) -> Self {
        Self { words, slots }
    }

    fn word(&self, slot: u32, at: usize) -> &'a AtomicU64 {
        self.words.word(index::HEADER_LEN + slot as usize * at::LEN + at)
    }

    /// Returns the number of the segment that may be read in a slot. Zero for none, and for a slot
    /// out of range.
    #[inline]
    pub(crate) fn number(&self, slot: u32) -> u64 {
        if slot >= self.slots {
            return 0;
        }
        // Sequentially consistent with the view lock: see `SegmentView`.
        self.word(slot, at::NUMBER).load(Ordering::SeqCst)
    }

    pub(crate) fn set_number(&self, slot: u32, number: u64) {
        self.word(slot, at::NUMBER).store(number, Ordering::SeqCst);
    }

    /// Returns a row. `None` if its checksum is wrong.
    pub(crate) fn row(&self, slot: u32) -> Option<Row> {
        let load = |at| self.word(slot, at).load(Ordering::Relaxed);
        let words = [load(at::FILE), load(at::CHARGED), load(at::STATE), load(at::EVICTION_ORDER)];
        // Most rows are free.
        if words == [0; 4] {
            return (load(at::CHECK) == 0).then_some(Row::FREE);
        }
        let state = match words[2] & !(at::MAIN_QUEUE | at::PARTLY_INDEXED) {
            at::FREE => State::Free,
            at::WRITING => State::Writing,
            at::SEALED => State::Sealed,
            _ => return None,
        };
        let (in_main_queue, is_partly_indexed) =
            (words[2] & at::MAIN_QUEUE != 0, words[2] & at::PARTLY_INDEXED != 0);
        let [file_number, charged, _, eviction_order] = words;
        let is_valid = check(slot, &words) == load(at::CHECK);
        is_valid.then_some(Row {
            file_number,
            charged,
            state,
            in_main_queue,
            is_partly_indexed,
            eviction_order,
        })
    }

    pub(crate) fn set_row(&self, slot: u32, row: &Row) {
        let words = row.words();
        let places = [at::FILE, at::CHARGED, at::STATE, at::EVICTION_ORDER];
        for (at, word) in places.into_iter().zip(words) {
            self.word(slot, at).store(word, Ordering::Relaxed);
        }
        self.word(slot, at::CHECK).store(check(slot, &words), Ordering::Relaxed);
    }

    /// Returns the rows that are in use, with their slots.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, Row)> + use<'a> {
        let table = *self;
        let rows = (0..self.slots).filter_map(move |slot| Some((slot, table.row(slot)?)));
        rows.filter(|(_, row)| row.state != State::Free)
    }

    /// Returns whether all rows have the right checksum. A damaged row would not count towards the
    /// limit.
    pub(crate) fn is_valid(&self) -> bool {
        (0..self.slots).all(|slot| self.row(slot).is_some())
    }

    /// Returns a free slot.
    pub(crate) fn free_slot(&self) -> Option<u32> {
        (0..self.slots).find(|&slot| self.row(slot).is_some_and(|row| row.state == State::Free))
    }
}
