//! The table of segments: which there are and how much each counts. Changed only by whoever has the
//! folder to himself; the number alone is read by everybody at any time.

use crate::layout::{index, slot as at};
use crate::map::Words;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The number in the name of the file.
    pub(crate) file: u64,
    /// How many bytes it counts.
    pub(crate) counted: u64,
    pub(crate) state: State,
    /// Holds what was moved or kept because it was used or is pinned.
    pub(crate) kept: bool,
    /// Its parts are not all in the index as yet.
    pub(crate) unread: bool,
    /// Lower numbers are evicted first.
    pub(crate) turn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Writing,
    Sealed,
}

impl Row {
    pub(crate) const FREE: Self =
        Self { file: 0, counted: 0, state: State::Free, kept: false, unread: false, turn: 0 };

    fn words(&self) -> [u64; 4] {
        let state = match self.state {
            State::Free => at::FREE,
            State::Writing => at::WRITING,
            State::Sealed => at::SEALED,
        };
        let kept = if self.kept { at::KEPT } else { 0 };
        let unread = if self.unread { at::UNREAD } else { 0 };
        [self.file, self.counted, state | kept | unread, self.turn]
    }
}

fn check(slot: u32, words: &[u64; 4]) -> u64 {
    let mut bytes = [0; 40];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes[32..].copy_from_slice(&u64::from(slot).to_le_bytes());
    // A row of zeros is a free one.
    if *words == [0; 4] { 0 } else { xxh3_64(&bytes) }
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

    /// The number of the segment that may be read in a slot. Zero for none, and for slots that
    /// there are not.
    #[inline]
    pub(crate) fn number(&self, slot: u32) -> u64 {
        if slot >= self.slots {
            return 0;
        }
        // In one order with the locks for lending: see `Segment::lend` and `evict`.
        self.word(slot, at::NUMBER).load(Ordering::SeqCst)
    }

    pub(crate) fn set_number(&self, slot: u32, number: u64) {
        self.word(slot, at::NUMBER).store(number, Ordering::SeqCst);
    }

    /// A row. `None` if its checksum is wrong.
    pub(crate) fn row(&self, slot: u32) -> Option<Row> {
        let load = |at| self.word(slot, at).load(Ordering::Relaxed);
        let words = [load(at::FILE), load(at::COUNTED), load(at::STATE), load(at::TURN)];
        // Most of them, whenever all are looked through.
        if words == [0; 4] {
            return (load(at::CHECK) == 0).then_some(Row::FREE);
        }
        let state = match words[2] & !(at::KEPT | at::UNREAD) {
            at::FREE => State::Free,
            at::WRITING => State::Writing,
            at::SEALED => State::Sealed,
            _ => return None,
        };
        let (kept, unread) = (words[2] & at::KEPT != 0, words[2] & at::UNREAD != 0);
        let [file, counted, _, turn] = words;
        let right = check(slot, &words) == load(at::CHECK);
        right.then_some(Row { file, counted, state, kept, unread, turn })
    }

    pub(crate) fn set_row(&self, slot: u32, row: &Row) {
        let words = row.words();
        let places = [at::FILE, at::COUNTED, at::STATE, at::TURN];
        for (at, word) in places.into_iter().zip(words) {
            self.word(slot, at).store(word, Ordering::Relaxed);
        }
        self.word(slot, at::CHECK).store(check(slot, &words), Ordering::Relaxed);
    }

    /// The rows that are in use, with their slots.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, Row)> + use<'a> {
        let table = *self;
        let rows = (0..self.slots).filter_map(move |slot| Some((slot, table.row(slot)?)));
        rows.filter(|(_, row)| row.state != State::Free)
    }

    /// Whether all rows have the right checksum: a row that has not would count nothing.
    pub(crate) fn whole(&self) -> bool {
        (0..self.slots).all(|slot| self.row(slot).is_some())
    }

    pub(crate) fn free_slot(&self) -> Option<u32> {
        (0..self.slots).find(|&slot| self.row(slot).is_some_and(|row| row.state == State::Free))
    }
}
