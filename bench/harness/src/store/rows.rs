//! The rows of a run, and the interface of the stores that contain them.

use crate::Result;
use std::path::{Path, PathBuf};

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Rows to load and scan.
    pub rows: u32,
    /// Length of a key in bytes, from 5 to 16. Keys of n digits are unique for up to 10^n rows.
    pub key_len: usize,
    /// Length of a value in bytes.
    pub value_len: usize,
    /// Durable writes of one row each. The concurrent tasks together write sixteen times as many.
    pub writes: u32,
    /// Number of rounds of each workload.
    pub rounds: usize,
    /// Whether to print rows in JSON instead of a table.
    pub json: bool,
    /// The directory in which a run creates a temporary folder for its files.
    pub directory: PathBuf,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let directory = std::env::temp_dir();
        let (rows, key_len, value_len, writes, rounds) = (1_600_000, 16, 100, 300, 5);
        Self { rows, key_len, value_len, writes, rounds, json: false, directory }
    }
}

/// The checksum of a scan, which forces it to read each row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub(super) rows: u64,
    bytes: u64,
    total: u64,
}

impl Sum {
    /// Adds a row.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.total += u64::from(key.last().copied().unwrap_or(0));
        self.total += u64::from(value.first().copied().unwrap_or(0));
    }

    /// Returns the sum of two checksums.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let Self { rows, bytes, total } = other;
        Self { rows: self.rows + rows, bytes: self.bytes + bytes, total: self.total + total }
    }
}

/// The rows of a run, in key order.
#[derive(Clone, Copy, Debug)]
pub struct StoreRows {
    pub(super) count: u32,
    key_len: usize,
    value_len: usize,
}

/// A key: the last bytes of the array, and their number.
#[derive(Clone, Copy, Debug)]
pub struct Key([u8; Self::LEN], usize);

impl Key {
    /// Maximum length of a key, in bytes.
    const LEN: usize = 16;

    /// Returns the bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        &self.0[Self::LEN - self.1..]
    }
}

/// A range of keys: the first is inclusive, the second exclusive.
pub type Bounds<'k> = (&'k [u8], &'k [u8]);

impl StoreRows {
    /// Returns the rows for these settings. Fails if keys of this length cannot be unique.
    pub fn new(options: &StoreOptions) -> Result<Self> {
        let StoreOptions { rows: count, key_len, value_len, .. } = *options;
        let digits = key_len.min(12) as u32;
        if !(5..=Key::LEN).contains(&key_len) || u64::from(count) > 10_u64.pow(digits) {
            let text = format!("expected keys of 5 to 16 bytes that {count} rows differ in");
            return Err(format!("{text}, found {key_len} bytes").into());
        }
        Ok(Self { count, key_len, value_len })
    }

    /// Returns the number of rows.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the total length of all keys and values, in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.count) * (self.key_len + self.value_len) as u64
    }

    /// Calls `row` with each key and value, in key order.
    pub fn each(&self, mut row: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut value = vec![b'v'; self.value_len];
        for n in 0..self.count {
            if let Some(first) = value.first_mut() {
                *first = n as u8;
            }
            row(self.key(n).bytes(), &value)?;
        }
        Ok(())
    }

    /// Returns the bounds of the range scans: the middle four fifths of the rows.
    pub(super) fn range(&self) -> [Key; 2] {
        [self.key(self.count / 10), self.key(self.count - self.count / 10)]
    }

    /// Returns the key of row `n`.
    pub(super) fn key(&self, n: u32) -> Key {
        let mut key = *b"key:000000000000";
        let mut rest = n;
        for digit in key.iter_mut().rev() {
            if rest == 0 {
                break;
            }
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        Key(key, self.key_len)
    }

    pub(super) fn sum(&self, bounds: Option<Bounds<'_>>) -> Result<Sum> {
        let mut sum = Sum::default();
        self.each(|key, value| {
            if bounds.is_none_or(|(from, before)| key >= from && key < before) {
                sum.add(key, value);
            }
            Ok(())
        })?;
        Ok(sum)
    }
}

/// An ordered store under test.
pub trait Ordered {
    /// Scans all rows, or the rows of a range.
    fn scan(&self, bounds: Option<Bounds<'_>>) -> Result<Sum>;

    /// Writes one row in a synced transaction.
    fn write(&self, key: &[u8], value: &[u8]) -> Result<()>;
}

/// Another ordered store to compare with.
#[derive(Clone, Copy, Debug)]
pub struct Rival {
    /// The name of the store in tables.
    pub name: &'static str,
    /// Creates a store with these rows, appended in key order and synced.
    pub load: fn(StoreRows, &Path) -> Result<Box<dyn Ordered>>,
}

/// Another ordered store, with its name.
pub(super) type Other = (&'static str, Box<dyn Ordered>);
