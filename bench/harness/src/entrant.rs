//! A system in a race, whatever its type.

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

/// A system in a race. A call here is for a whole round of one work: the many calls inside it are
/// to the system's own type.
pub trait Entrant {
    /// What rows and tables call it.
    fn name(&self) -> &'static str;

    /// Fills a new store in place of the last one. No samples when it opens another one's files.
    fn build(&mut self, rows: &Rows, directory: &Path) -> Result<Vec<Sample>>;

    /// Opens the files in place of those open. No samples when there are none.
    fn open(&mut self, directory: &Path) -> Result<Vec<Sample>>;

    /// Looks all keys up; nothing for a work the system does not offer.
    fn look_up(&self, work: Work, keys: &Keys<'_>) -> Result<Option<Sample>>;
}

/// One measurement, in the unit of its work.
pub type Sample = (Work, f64);

/// A system, ready for a race.
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

/// Looks keys up in this thread.
fn one_thread<'a, S: System>(
    store: &'a S,
    keys: &[&[u8]],
    look_up: impl FnOnce(&mut S::Reader<'a>, &[&[u8]]) -> Result<usize>,
) -> Result<(Duration, usize)> {
    let mut reader = store.reader()?;
    timed(|| look_up(&mut reader, keys))
}

/// Looks all keys up in each of two threads at once, so that each has as much to keep in its caches
/// as one thread alone. Answers half of the time, as if the keys had been shared out.
fn two_threads<S: System>(store: &S, keys: &[&[u8]]) -> Result<(Duration, usize)> {
    let (some, others) = keys.split_at(keys.len() / 2);
    let start = Barrier::new(2);
    let look_up = |first, second| -> Result<_> {
        let reader = store.reader();
        // Before the error of the reader, lest the other thread waits for ever.
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

fn timed<T>(act: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let start = Instant::now();
    let done = act()?;
    Ok((start.elapsed(), done))
}

fn nanos_each(time: Duration, operations: usize) -> f64 {
    time.as_nanos() as f64 / operations as f64
}

fn taken_since(before: Option<u64>) -> Option<Sample> {
    let taken = resident_bytes()?.saturating_sub(before?);
    Some((Work::Resident, taken as f64))
}
