//! Opens generations of snapshots, if they fit in memory.
//!
//! All pages of a generation are read and mapped before it serves, by the thread that opens it, and
//! all its bytes are verified. So no request waits for the disk.

use super::served::{Served, SnapshotSource, Switching};
use crate::log;
use nuthatch_snapshot::{Error, Limit, OpenOptions, Residency, Result, Snapshot, WatchOptions};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory for snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotMemory {
    /// Maximum bytes of all snapshots together; `None` if it is unknown.
    pub max_bytes: Option<u64>,
    /// Whether a snapshot that does not fit is served nevertheless, from the page cache: requests
    /// then wait for the disk.
    pub allows_oversize: bool,
}

/// Why snapshots cannot be served.
#[derive(Debug)]
pub enum OpenError {
    /// A name, prefix or number of snapshots is invalid.
    Invalid(String),
    /// The snapshot with this name cannot be opened, or is damaged.
    Snapshot(String, Error),
    /// A snapshot does not fit in memory.
    TooLarge {
        /// The name.
        name: String,
        /// Its bytes.
        found: u64,
        /// The bytes that are left for it.
        max: u64,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(problem) => f.write_str(problem),
            Self::Snapshot(name, error) => write!(f, "snapshot {name}: {error}"),
            Self::TooLarge { name, found, max } => write!(
                f,
                "snapshot {name}: expected at most {max} bytes, which are left in memory, found \
                 {found}"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// What the limit of an [`Error::Limit`] is about.
const FITTING_BYTES: &str = "bytes of a snapshot beside the cache and the other generations";

/// The bytes of all generations.
#[derive(Debug, Default)]
struct Bytes {
    /// Those of the generation that each snapshot serves.
    served: Vec<u64>,
    /// Those of generations that are being opened.
    opening: u64,
}

/// The memory of all snapshots, which the threads of their watches share.
#[derive(Debug)]
pub(super) struct Ledger {
    memory: SnapshotMemory,
    bytes: Mutex<Bytes>,
}

/// The bytes of a generation that is being opened, until this is dropped.
struct Reservation<'l> {
    ledger: &'l Ledger,
    bytes: u64,
}

impl Ledger {
    pub(super) fn new(memory: SnapshotMemory, snapshots: usize) -> Arc<Self> {
        let bytes = Bytes { served: vec![0; snapshots], opening: 0 };
        Arc::new(Self { memory, bytes: Mutex::new(bytes) })
    }

    fn lock(&self) -> MutexGuard<'_, Bytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves memory for a generation. It needs its bytes beside those of the generation that it
    /// replaces, which requests read until it is complete.
    fn reserve(&self, bytes: u64) -> Result<Reservation<'_>> {
        let mut all = self.lock();
        let taken = all.served.iter().sum::<u64>().saturating_add(all.opening);
        let max = self.memory.max_bytes.unwrap_or(u64::MAX).saturating_sub(taken);
        if bytes > max {
            return Err(Error::Limit(Box::new(Limit { what: FITTING_BYTES, max, found: bytes })));
        }
        all.opening += bytes;
        Ok(Reservation { ledger: self, bytes })
    }

    /// Notes the bytes of the generation that the snapshot with this number serves now.
    fn note_served(&self, number: usize, bytes: u64) {
        self.lock().served[number] = bytes;
    }

    /// Opens a generation of the snapshot with this number, populates and verifies it.
    fn open(&self, number: usize, name: &str, path: &Path) -> Result<Snapshot> {
        let bytes = Snapshot::open(path)?.stats().file_len;
        let reserved = match self.reserve(bytes) {
            Ok(reservation) => Some(reservation),
            Err(error) if self.memory.allows_oversize => {
                log::snapshot_oversized(name, &error);
                None
            }
            Err(error) => return Err(error),
        };
        let residency = if reserved.is_some() { Residency::Populated } else { Residency::Mapped };
        let snapshot = OpenOptions::new().residency(residency).open(path)?;
        let opened = snapshot.stats().file_len;
        if reserved.is_some() && opened > bytes {
            // The path was replaced meanwhile. The next poll finds the new file.
            let limit = Limit { what: FITTING_BYTES, max: bytes, found: opened };
            return Err(Error::Limit(Box::new(limit)));
        }
        snapshot.verify()?;
        self.note_served(number, if reserved.is_some() { opened } else { 0 });
        Ok(snapshot)
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.ledger.lock().opening -= self.bytes;
    }
}

/// Opens a snapshot and watches its path.
pub(super) fn open(
    ledger: &Arc<Ledger>,
    number: usize,
    source: SnapshotSource,
) -> std::result::Result<Served, OpenError> {
    let switching = Arc::new(Switching::default());
    let (opener, name) = (Arc::clone(ledger), source.name.clone());
    let options = WatchOptions::new().open_with(move |path| opener.open(number, &name, path));
    let (reporter, name) = (Arc::clone(&switching), source.name.clone());
    let options = options.report(move |event| reporter.note(&name, event));
    let watch = options.path(&source.path).map_err(|error| {
        let name = source.name.clone();
        match error {
            Error::Limit(limit) => {
                let Limit { max, found, .. } = *limit;
                OpenError::TooLarge { name, found, max }
            }
            error => OpenError::Snapshot(name, error),
        }
    })?;
    switching.note_opened();
    let (bytes, entries) = {
        let reader = watch.reader();
        (reader.last().stats().file_len, reader.last().len())
    };
    log::snapshot_opened(&source.name, &source.path, entries);
    let memory = ledger.memory;
    if ledger.reserve(bytes).is_err() && !memory.allows_oversize {
        log::snapshot_not_replaceable(&source.name, bytes);
    }
    Ok(Served::new(source, watch, switching))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(max_bytes: u64) -> Arc<Ledger> {
        let memory = SnapshotMemory { max_bytes: Some(max_bytes), allows_oversize: false };
        Ledger::new(memory, 2)
    }

    #[test]
    fn a_generation_must_fit_beside_the_one_that_it_replaces() {
        let ledger = ledger(100);
        drop(ledger.reserve(60).expect("room"));
        ledger.note_served(0, 60);
        let error = ledger.reserve(41).err().expect("no room");
        let text = "bytes of a snapshot beside the cache and the other generations: at most 40, \
                    found 41";
        assert_eq!(error.to_string(), text);
        let first = ledger.reserve(30).expect("room");
        assert!(ledger.reserve(11).is_err(), "two generations are opened at once");
        drop(first);
        assert!(ledger.reserve(40).is_ok());
        ledger.note_served(0, 10);
        assert!(ledger.reserve(90).is_ok());
    }
}
