//! The interface of a system under test.

use crate::Result;
use crate::rows::Rows;
use std::path::Path;

/// Number of keys per call in the workload `get_many`.
pub const BATCH: usize = 64;

/// A key-value system under test.
///
/// The loops over lookups are compiled for each system. A lookup therefore costs what it costs a
/// user of the system, without dynamic dispatch, and the compiler can inline it.
pub trait System: Sized + Sync + 'static {
    /// The name of the system in rows and tables.
    const NAME: &'static str;

    /// The name of the folder of its files. A system with another system's folder is not built: it
    /// opens the files that the other system built.
    const FOLDER: &'static str = Self::NAME;

    /// Whether the system is built from rows in key order. The rows are sorted before the clock
    /// starts, in favour of such systems.
    const ORDERED: bool = false;

    /// What a thread needs for lookups, such as a transaction. It is created before the clock
    /// starts.
    type Reader<'a>: Reader
    where
        Self: 'a;

    /// Fills a new store with all rows and syncs its files. The workload `build` measures this
    /// function.
    fn build(rows: &Rows, folder: &Path) -> Result<Built<Self>>;

    /// Opens the files in `folder`. The workload `open` measures this function.
    fn open(folder: &Path) -> Result<Self>;

    /// Creates a reader for one thread.
    fn reader(&self) -> Result<Self::Reader<'_>>;
}

/// The result of building a store.
#[derive(Debug)]
pub enum Built<S> {
    /// Files that are not open yet.
    Files,
    /// An open store that exists only in memory.
    Memory(S),
}

/// The lookups of one thread. Each lookup reads the value that it finds, as a caller would.
pub trait Reader {
    /// Whether [`texts`](Self::texts) is implemented as a batch instead of a loop.
    const BATCHES: bool = false;

    /// Returns the [first byte](first_byte) of the text of `key`, or `None` if the key is absent.
    fn text(&mut self, key: &[u8]) -> Result<Option<u8>>;

    /// Returns the first float of the vector of `key`, or `None` if the key is absent.
    fn vector(&mut self, key: &[u8]) -> Result<Option<f32>>;

    /// Looks up the texts of at most [`BATCH`] keys, and returns their tally.
    fn texts(&mut self, keys: &[&[u8]]) -> Result<Tally> {
        let mut tally = Tally::default();
        for key in keys {
            tally.add(self.text(key)?);
        }
        Ok(tally)
    }
}

/// The number of keys found and a checksum of their values, which forces reading each value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of keys found.
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

/// Returns the first float of a vector that is stored as little-endian bytes.
#[inline]
pub fn first_float(bytes: &[u8]) -> Option<f32> {
    bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes))
}
