//! Ordered stores beside each other: `nuthatch bench store`.
//!
//! The same rows are loaded into all, in key order. Then each round has every work once, another
//! one first each time; figures are medians of the rounds. Every scan adds up lengths and a byte of
//! each key and value, and fails when the sum is another one than the rows have.

mod lmdb;
mod nuthatch;
mod report;
mod writes;

pub use lmdb::Lmdb;
pub use nuthatch::Store;

use crate::Result;
use crate::folder::Folder;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Rows to load and scan.
    pub rows: u32,
    /// Bytes of a value; keys have 16.
    pub value_len: usize,
    /// Durable writes of one row each; the tasks together do sixteen times as many.
    pub writes: u32,
    /// How often each work is done.
    pub rounds: usize,
    /// Whether to print rows for programs rather than a table.
    pub json: bool,
    /// Where the files go, in a folder of their own that is removed at the end.
    pub directory: PathBuf,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let directory = std::env::temp_dir();
        Self { rows: 1_600_000, value_len: 100, writes: 300, rounds: 5, json: false, directory }
    }
}

/// What a scan adds up: nothing that it passed stays unread.
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

    /// Adds what another one has.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let Self { rows, bytes, total } = other;
        Self { rows: self.rows + rows, bytes: self.bytes + bytes, total: self.total + total }
    }
}

/// The rows of a run: keys of 16 bytes, in order.
#[derive(Clone, Copy, Debug)]
pub struct StoreRows {
    count: u32,
    value_len: usize,
}

impl StoreRows {
    /// So many rows, with values of so many bytes.
    pub fn new(count: u32, value_len: usize) -> Self {
        Self { count, value_len }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The bytes of all keys and values.
    pub fn bytes(&self) -> u64 {
        u64::from(self.count) * (16 + self.value_len as u64)
    }

    /// Hands each row over, in key order.
    pub fn each(&self, mut row: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut value = vec![b'v'; self.value_len];
        for n in 0..self.count {
            if let Some(first) = value.first_mut() {
                *first = n as u8;
            }
            row(&key(n), &value)?;
        }
        Ok(())
    }

    /// The bounds of the range that range scans read: four fifths of the rows.
    pub fn range(&self) -> ([u8; 16], [u8; 16]) {
        (key(self.count / 10), key(self.count - self.count / 10))
    }

    fn sum(&self, bounds: Option<([u8; 16], [u8; 16])>) -> Result<Sum> {
        let mut sum = Sum::default();
        self.each(|key, value| {
            if bounds.is_none_or(|(from, before)| key >= &from[..] && key < &before[..]) {
                sum.add(key, value);
            }
            Ok(())
        })?;
        Ok(sum)
    }
}

/// The key of a row.
pub fn key(n: u32) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut rest = n;
    for digit in key.iter_mut().rev() {
        if rest == 0 {
            break;
        }
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// An ordered store in a race.
pub trait Ordered: Sized {
    /// What tables call it.
    const NAME: &'static str;

    /// Makes a store with these rows, appended in key order and synced.
    fn load(rows: StoreRows, folder: &Path) -> Result<Self>;

    /// Reads all rows, or those from one key on and before another.
    fn scan(&self, bounds: Option<([u8; 16], [u8; 16])>) -> Result<Sum>;

    /// Writes one row in a transaction that is synced.
    fn write(&self, key: &[u8], value: &[u8]) -> Result<()>;
}

/// A work of a system, done once for each round. Answers the rows it did and what they add up to.
type Work<'s> = (&'static str, &'static str, Box<dyn Fn() -> Result<Sum> + 's>);

/// One figure: rows or writes a second.
#[derive(Clone, Debug)]
pub(crate) struct StoreFigure {
    pub(crate) work: &'static str,
    pub(crate) system: &'static str,
    pub(crate) per_second: f64,
    /// Against what: the system and work, and how many times its rate this is.
    pub(crate) against: Option<(&'static str, f64)>,
    /// The time that 99 of 100 acknowledgements took at most, in microseconds.
    pub(crate) p99_us: Option<f64>,
}

/// Measures a store of Nuthatch beside plain LMDB, and `O` where there is another one.
pub fn run_stores<O: Ordered>(
    options: &StoreOptions,
    other: bool,
    out: &mut dyn Write,
) -> Result<()> {
    if options.rounds == 0 || options.rows < 10 {
        return Err("there is at least one round, and ten rows".into());
    }
    let folder = Folder::create(&options.directory)?;
    let rows = StoreRows::new(options.rows, options.value_len);
    let mut figures = Vec::new();
    let lmdb: Lmdb = loaded(rows, folder.path(), &mut figures)?;
    let own: Store = loaded(rows, folder.path(), &mut figures)?;
    let other: Option<O> = other.then(|| loaded(rows, folder.path(), &mut figures)).transpose()?;
    scans(options, rows, &lmdb, &own, other.as_ref(), &mut figures)?;
    figures.extend(writes::race(options, &lmdb, &own, other.as_ref())?);
    if options.json {
        report::json(&figures, out)?;
    } else {
        report::table(options, &figures, out)?;
    }
    Ok(())
}

fn loaded<S: Ordered>(rows: StoreRows, folder: &Path, figures: &mut Vec<StoreFigure>) -> Result<S> {
    let folder = folder.join(S::NAME);
    std::fs::create_dir(&folder)?;
    let start = Instant::now();
    let system = S::load(rows, &folder)?;
    let per_second = f64::from(rows.count) / start.elapsed().as_secs_f64();
    let first = figures.first().map(|figure| ("lmdb", per_second / figure.per_second));
    let (work, system_name) = ("load", S::NAME);
    let (against, p99_us) = (first, None);
    figures.push(StoreFigure { work, system: system_name, per_second, against, p99_us });
    Ok(system)
}

fn scans<O: Ordered>(
    options: &StoreOptions,
    rows: StoreRows,
    lmdb: &Lmdb,
    own: &Store,
    other: Option<&O>,
    figures: &mut Vec<StoreFigure>,
) -> Result<()> {
    let range = rows.range();
    let mut works: Vec<Work<'_>> = vec![
        ("scan", Lmdb::NAME, Box::new(|| lmdb.scan(None))),
        ("scan", Store::NAME, Box::new(|| own.scan(None))),
        ("scan_iterator", Store::NAME, Box::new(|| own.scan_iterator())),
        ("scan_batches", Store::NAME, Box::new(|| own.scan_batches())),
        ("scan_stream", Store::NAME, Box::new(|| own.scan_stream())),
        ("scan_1_thread", Store::NAME, Box::new(|| own.scan_parallel(1))),
        ("scan_2_threads", Store::NAME, Box::new(|| own.scan_parallel(2))),
        ("scan_range", Lmdb::NAME, Box::new(move || lmdb.scan(Some(range)))),
        ("scan_range", Store::NAME, Box::new(move || own.scan(Some(range)))),
    ];
    if let Some(other) = other {
        works.push(("scan", O::NAME, Box::new(|| other.scan(None))));
        works.push(("scan_range", O::NAME, Box::new(move || other.scan(Some(range)))));
    }
    let (all, within) = (rows.sum(None)?, rows.sum(Some(range))?);
    let mut times = vec![Vec::new(); works.len()];
    // The first round is not timed: pages are mapped in it.
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
            _ if *system == Lmdb::NAME => None,
            "scan_2_threads" => Some(("one thread", rate("scan_1_thread", Store::NAME))),
            "scan_range" => Some((Lmdb::NAME, rate("scan_range", Lmdb::NAME))),
            _ => Some((Lmdb::NAME, rate("scan", Lmdb::NAME))),
        };
        let against = against.map(|(name, rate)| (name, per_second / rate));
        let (per_second, p99_us) = (*per_second, None);
        figures.push(StoreFigure { work, system, per_second, against, p99_us });
    }
    Ok(())
}

/// The median of samples of which there is one at least.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
