//! A system under test, independent of its type.

use crate::folder::file_bytes;
use crate::lookups::Keys;
use crate::resident::resident_bytes;
use crate::rows::Rows;
use crate::system::{Built, Reader, System};
use crate::work::Work;
use crate::{Result, loops};
use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// A system under test. Each call covers a whole round of one workload. The operations inside a
/// round are calls to the concrete type.
pub trait Entrant {
    /// Returns the name of the system in rows and tables.
    fn name(&self) -> &'static str;

    /// Fills a new store, which replaces the previous one. Returns no samples if the system opens
    /// the files of another system.
    fn build(&mut self, rows: &Rows, directory: &Path) -> Result<Vec<Sample>>;

    /// Opens the files, and closes those that were open. Returns no samples if the system has no
    /// files.
    fn open(&mut self, directory: &Path) -> Result<Vec<Sample>>;

    /// Looks up all keys. Returns `None` if the system does not support the workload.
    fn look_up(&self, work: Work, keys: &Keys<'_>) -> Result<Option<Sample>>;
}

/// A workload and one measurement, in the unit of the workload.
pub type Sample = (Work, f64);

/// Returns a system under test, without data.
pub fn entrant<S: System>() -> Box<dyn Entrant> {
    Box::new(Contest::<S> { store: None, in_memory: false })
}

struct Contest<S> {
    store: Option<S>,
    in_memory: bool,
}

impl<S: System> Entrant for Contest<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn build(&mut self, rows: &Rows, directory: &Path) -> Result<Vec<Sample>> {
        if S::FOLDER != S::NAME {
            return Ok(Vec::new());
        }
        self.store = None;
        let folder = directory.join(S::FOLDER);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        if S::ORDERED {
            rows.sorted();
        }
        let before = resident_bytes();
        let (time, built) = timed(|| S::build(rows, &folder))?;
        let mut samples = vec![(Work::Build, nanos_each(time, rows.len()))];
        match built {
            Built::Files => {
                let beyond = file_bytes(&folder)? as f64 - rows.bytes() as f64;
                samples.push((Work::FileOverhead, beyond / rows.len() as f64));
            }
            Built::Memory(store) => {
                samples.extend(taken_since(before));
                self.store = Some(store);
                self.in_memory = true;
            }
        }
        Ok(samples)
    }

    fn open(&mut self, directory: &Path) -> Result<Vec<Sample>> {
        if self.in_memory {
            return Ok(Vec::new());
        }
        self.store = None;
        let before = resident_bytes();
        let (time, store) = timed(|| S::open(&directory.join(S::FOLDER)))?;
        self.store = Some(store);
        let mut samples = vec![(Work::Open, nanos_each(time, 1))];
        samples.extend(taken_since(before));
        Ok(samples)
    }

    fn look_up(&self, work: Work, keys: &Keys<'_>) -> Result<Option<Sample>> {
        let store = self.store.as_ref().ok_or("lookups before opening")?;
        let (hits, misses) = (&keys.hits[..], &keys.misses[..]);
        let (time, found) = match work {
            Work::GetHit => one_thread(store, hits, loops::texts)?,
            Work::GetMiss => one_thread(store, misses, loops::texts)?,
            Work::GetMany if S::Reader::BATCHES => one_thread(store, hits, loops::batches)?,
            Work::GetHit2Threads => two_threads(store, hits)?,
            Work::GetVector => one_thread(store, hits, loops::vectors)?,
            _ => return Ok(None),
        };
        let (asked, expected) =
            if work == Work::GetMiss { (misses.len(), 0) } else { (hits.len(), hits.len()) };
        if found != expected {
            let (name, work) = (S::NAME, work.name());
            return Err(format!("{name}: {work} found {found} keys, not {expected}").into());
        }
        Ok(Some((work, nanos_each(time, asked))))
    }
}

/// Looks up keys in this thread. Returns the duration and the number of keys found.
fn one_thread<'a, S: System>(
    store: &'a S,
    keys: &[&[u8]],
    look_up: impl FnOnce(&mut S::Reader<'a>, &[&[u8]]) -> Result<usize>,
) -> Result<(Duration, usize)> {
    let mut reader = store.reader()?;
    timed(|| look_up(&mut reader, keys))
}

/// Looks up all keys in each of two threads at once, so that each thread uses as much processor
/// cache as a single thread. Returns half of the duration, as if the threads had shared the keys.
fn two_threads<S: System>(store: &S, keys: &[&[u8]]) -> Result<(Duration, usize)> {
    let (some, others) = keys.split_at(keys.len() / 2);
    let start = Barrier::new(2);
    let look_up = |first, second| -> Result<_> {
        let reader = store.reader();
        // Waits before a reader's error is returned, otherwise the other thread would wait forever.
        start.wait();
        let mut reader = reader?;
        let began = Instant::now();
        let found = loops::texts(&mut reader, first)? + loops::texts(&mut reader, second)?;
        Ok((began, Instant::now(), found))
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(|| look_up(others, some));
        (look_up(some, others), other.join())
    });
    let (one, other) = (one?, other.map_err(|_| "a thread of lookups panicked")??);
    let both = one.1.max(other.1) - one.0.min(other.0);
    Ok((both / 2, one.2.min(other.2)))
}

fn timed<T>(operation: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let start = Instant::now();
    let done = operation()?;
    Ok((start.elapsed(), done))
}

fn nanos_each(time: Duration, operations: usize) -> f64 {
    time.as_nanos() as f64 / operations as f64
}

fn taken_since(before: Option<u64>) -> Option<Sample> {
    let taken = resident_bytes()?.saturating_sub(before?);
    Some((Work::Resident, taken as f64))
}
