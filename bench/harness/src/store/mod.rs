//! Benchmarks ordered stores: `nuthatch-bench store`.
//!
//! All stores load the same rows in key order. Each round then runs every workload once and starts
//! with another one. Results are medians of the rounds. Every scan adds up the lengths and one byte
//! of each key and value, and fails if the sum differs from the sum of the rows.

mod lmdb;
mod nuthatch;
mod report;
mod writes;

use lmdb::Lmdb;
use nuthatch::Store;

use crate::Result;
use crate::folder::Folder;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
    rows: u64,
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
    count: u32,
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
    fn range(&self) -> [Key; 2] {
        [self.key(self.count / 10), self.key(self.count - self.count / 10)]
    }

    /// Returns the key of row `n`.
    fn key(&self, n: u32) -> Key {
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

    fn sum(&self, bounds: Option<Bounds<'_>>) -> Result<Sum> {
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

/// The name of a workload, the name of a system, and a function that runs the workload once and
/// returns its checksum.
type Work<'s> = (&'static str, &'static str, Box<dyn Fn() -> Result<Sum> + 's>);

/// One result: rows or writes per second.
#[derive(Clone, Debug)]
pub(crate) struct StoreFigure {
    pub(crate) work: &'static str,
    pub(crate) system: &'static str,
    pub(crate) per_second: f64,
    /// The name of the reference, and this rate divided by the rate of the reference.
    pub(crate) against: Option<(&'static str, f64)>,
    /// The 99th percentile of the acknowledgement times, in microseconds.
    pub(crate) p99_us: Option<f64>,
}

/// The names of Nuthatch's store and of plain LMDB in tables.
const OWN: &str = "nuthatch";
const LMDB: &str = "lmdb";

/// Measures Nuthatch's store against plain LMDB and `rivals`.
pub fn run_stores(options: &StoreOptions, rivals: &[Rival], out: &mut dyn Write) -> Result<()> {
    if options.rounds == 0 || options.rows < 10 {
        return Err("there is at least one round, and ten rows".into());
    }
    let folder = Folder::create(&options.directory)?;
    let rows = StoreRows::new(options)?;
    let mut figures = Vec::new();
    let lmdb = loaded(LMDB, rows, folder.path(), &mut figures, Lmdb::load)?;
    let own = loaded(OWN, rows, folder.path(), &mut figures, Store::load)?;
    let mut others: Vec<Other> = Vec::new();
    for Rival { name, load } in rivals {
        others.push((name, loaded(name, rows, folder.path(), &mut figures, load)?));
    }
    scans(options, rows, &lmdb, &own, &others, &mut figures)?;
    figures.extend(writes::race(options, rows, &lmdb, &own, &others)?);
    if options.json {
        report::json(&figures, out)?;
    } else {
        report::table(options, &figures, out)?;
    }
    Ok(())
}

/// Another ordered store, with its name.
type Other = (&'static str, Box<dyn Ordered>);

fn loaded<S>(
    name: &'static str,
    rows: StoreRows,
    folder: &Path,
    figures: &mut Vec<StoreFigure>,
    load: impl Fn(StoreRows, &Path) -> Result<S>,
) -> Result<S> {
    let folder = folder.join(name);
    std::fs::create_dir(&folder)?;
    let start = Instant::now();
    let system = load(rows, &folder)?;
    let per_second = f64::from(rows.count) / start.elapsed().as_secs_f64();
    let first = figures.first().map(|figure| (LMDB, per_second / figure.per_second));
    let (against, p99_us) = (first, None);
    figures.push(StoreFigure { work: "load", system: name, per_second, against, p99_us });
    Ok(system)
}

fn scans(
    options: &StoreOptions,
    rows: StoreRows,
    lmdb: &Lmdb,
    own: &Store,
    others: &[Other],
    figures: &mut Vec<StoreFigure>,
) -> Result<()> {
    let keys = rows.range();
    let range = Some((keys[0].bytes(), keys[1].bytes()));
    let mut works: Vec<Work<'_>> = vec![
        ("scan", LMDB, Box::new(|| lmdb.scan(None))),
        ("scan", OWN, Box::new(|| own.scan(None))),
        ("scan_iterator", OWN, Box::new(|| own.scan_iterator())),
        ("scan_batches", OWN, Box::new(|| own.scan_batches())),
        ("scan_stream", OWN, Box::new(|| own.scan_stream())),
        ("scan_1_thread", OWN, Box::new(|| own.scan_parallel(1))),
        ("scan_2_threads", OWN, Box::new(|| own.scan_parallel(2))),
        ("scan_range", LMDB, Box::new(move || lmdb.scan(range))),
        ("scan_range", OWN, Box::new(move || own.scan(range))),
    ];
    for (name, other) in others {
        works.push(("scan", name, Box::new(|| other.scan(None))));
        works.push(("scan_range", name, Box::new(move || other.scan(range))));
    }
    let (all, within) = (rows.sum(None)?, rows.sum(range)?);
    let mut times = vec![Vec::new(); works.len()];
    // The first round maps the pages and is not timed.
    for round in 0..=options.rounds {
        for nth in 0..works.len() {
            let nth = (nth + round) % works.len();
            let (work, system, scan) = &works[nth];
            let start = Instant::now();
            let sum = scan()?;
            let time = start.elapsed().as_secs_f64();
            let expected = if *work == "scan_range" { within } else { all };
            if sum != expected {
                return Err(format!("{system}: {work} found {sum:?}, not {expected:?}").into());
            }
            if round > 0 {
                times[nth].push(sum.rows as f64 / time);
            }
        }
    }
    let rates: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    let rate = |work: &str, system: &str| {
        let at = works.iter().position(|(w, s, _)| *w == work && *s == system);
        at.map_or(f64::NAN, |at| rates[at])
    };
    for ((work, system, _), per_second) in works.iter().zip(&rates) {
        let against = match *work {
            _ if *system == LMDB => None,
            "scan_2_threads" => Some(("one thread", rate("scan_1_thread", OWN))),
            "scan_range" => Some((LMDB, rate("scan_range", LMDB))),
            _ => Some((LMDB, rate("scan", LMDB))),
        };
        let against = against.map(|(name, rate)| (name, per_second / rate));
        let (per_second, p99_us) = (*per_second, None);
        figures.push(StoreFigure { work, system, per_second, against, p99_us });
    }
    Ok(())
}

/// Returns the median of the samples, or NaN if there are none.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
