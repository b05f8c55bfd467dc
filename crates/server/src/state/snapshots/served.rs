//! One served snapshot: its watch, its prefix and its counters.

use crate::log;
use crate::state::counter::Counter;
use nuthatch_snapshot::{Event, Watch, WatchReader};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// A snapshot to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSource {
    /// The name, for messages and metrics.
    pub name: String,
    /// The start of its keys, which is not part of the keys in the snapshot.
    pub prefix: Vec<u8>,
    /// The path of the file, of the manifest of a set, or of a symbolic link to one of them.
    pub path: PathBuf,
}

/// The lookups of one thread in one snapshot. Only that thread counts.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) hits: Counter,
    pub(super) misses: Counter,
    /// Lookups that met damage.
    pub(super) errors: Counter,
    /// Refused requests that would have written.
    pub(super) refused_writes: Counter,
}

/// The function that wakes the threads, so that they take a new generation.
type Wake = Box<dyn Fn() + Send + Sync>;

/// What the thread of a watch reports.
#[derive(Default)]
pub(super) struct Switching {
    /// When the current generation was opened.
    opened: Mutex<Option<Instant>>,
    wake: OnceLock<Wake>,
}

impl Switching {
    /// Logs an event of the watch, and wakes the threads after a switch.
    pub(super) fn note(&self, name: &str, event: &Event<'_>) {
        match event {
            Event::Switched(snapshot) => {
                self.note_opened();
                log::snapshot_switched(name, snapshot.path(), snapshot.len());
                if let Some(wake) = self.wake.get() {
                    wake();
                }
            }
            Event::Rejected(error) => log::snapshot_rejected(name, error),
            _ => {}
        }
    }

    pub(super) fn note_opened(&self) {
        *lock(&self.opened) = Some(Instant::now());
    }

    /// Returns the seconds since the current generation was opened.
    pub(super) fn age_seconds(&self) -> f64 {
        lock(&self.opened).map_or(0.0, |opened| opened.elapsed().as_secs_f64())
    }
}

/// A snapshot that is served.
pub(super) struct Served {
    pub(super) source: SnapshotSource,
    pub(super) watch: Watch,
    pub(super) switching: Arc<Switching>,
    /// The counters of all threads.
    counts: Mutex<Vec<Arc<Counts>>>,
}

impl Served {
    pub(super) fn new(source: SnapshotSource, watch: Watch, switching: Arc<Switching>) -> Self {
        Self { source, watch, switching, counts: Mutex::default() }
    }

    /// Creates the reader of a thread, and its counters.
    pub(super) fn begin_thread(&self) -> (WatchReader, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        lock(&self.counts).push(Arc::clone(&counts));
        (self.watch.reader(), counts)
    }

    /// Sets the function that wakes the threads.
    pub(super) fn wake_by(&self, wake: Wake) {
        // Only the first one counts: a set of snapshots has one server.
        let _ = self.switching.wake.set(wake);
    }

    /// Returns the sum of one counter of all threads.
    pub(super) fn sum(&self, counter: impl Fn(&Counts) -> &Counter) -> u64 {
        lock(&self.counts).iter().map(|counts| counter(counts).get()).sum()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
