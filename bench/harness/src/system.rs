//! What a system must be able to do to be measured.

use crate::Result;
use crate::rows::Rows;
use std::path::Path;

/// Keys that are asked for at once in the work `get_many`.
pub const BATCH: usize = 64;

/// A key-value system: how it is filled, opened and asked.
///
/// The loops over lookups are compiled for each system, so that a lookup costs what it costs its
/// users: no call through a table, nothing that the compiler cannot see through.
pub trait System: Sized + Sync + 'static {
    /// What rows and tables call it.
    const NAME: &'static str;

    /// The folder its files are in. A system that names another one's folder is not built: it opens
    /// what the other one made, in its own way.
    const FOLDER: &'static str = Self::NAME;

    /// Whether it is built from rows in key order. They are sorted before the clock starts, in
    /// favour of such systems.
    const ORDERED: bool = false;

    /// What a thread needs to look keys up, such as a transaction. Made before the clock starts.
    type Reader<'a>: Reader
    where
        Self: 'a;

    /// Fills a new store with all rows: what the work `build` times. Files are synced.
    fn build(rows: &Rows, folder: &Path) -> Result<Built<Self>>;

    /// Opens the files in this folder: what the work `open` times.
    fn open(folder: &Path) -> Result<Self>;

    /// Makes a thread ready to look keys up.
    fn reader(&self) -> Result<Self::Reader<'_>>;
}

/// What building leaves behind.
#[derive(Debug)]
pub enum Built<S> {
    /// Files, to be opened.
    Files,
    /// A store that lives in memory alone, and so is open.
    Memory(S),
}

/// Lookups of one thread. Each touches the value it finds, as a caller would.
pub trait Reader {
    /// Whether [`texts`](Self::texts) is more than a loop.
    const BATCHES: bool = false;

    /// Returns the [first byte](first_byte) of the text under this key.
    fn text(&mut self, key: &[u8]) -> Result<Option<u8>>;

    /// The first float of the vector under this key.
    fn vector(&mut self, key: &[u8]) -> Result<Option<f32>>;

    /// The texts under at most [`BATCH`] keys, counted and summed.
    fn texts(&mut self, keys: &[&[u8]]) -> Result<Tally> {
        let mut tally = Tally::default();
        for key in keys {
            tally.add(self.text(key)?);
        }
        Ok(tally)
    }
}

/// What lookups found, and what their values were, so that no value stays unread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Keys that were there.
    pub found: usize,
    /// Sum of the first bytes of their values.
    pub sum: u64,
}

impl Tally {
    /// Counts one lookup.
    #[inline]
    pub fn add(&mut self, first: Option<u8>) {
        if let Some(first) = first {
            self.found += 1;
            self.sum += u64::from(first);
        }
    }
}

/// Returns the first byte of a text, or zero if it is empty.
#[inline]
pub fn first_byte(text: &[u8]) -> u8 {
    text.first().copied().unwrap_or(0)
}

/// The first float of a vector that is stored as bytes.
#[inline]
pub fn first_float(bytes: &[u8]) -> Option<f32> {
    bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes))
}
