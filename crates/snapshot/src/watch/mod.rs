//! Following a snapshot that is replaced while it is read.

mod cell;
mod generations;
mod source;

pub use generations::Generations;

use crate::error::Result;
use crate::reader::{OpenOptions, Snapshot};
use cell::{Cell, Handle};
use source::{Identity, Source};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

#[cfg(loom)]
use loom::sync::Arc;
#[cfg(not(loom))]
use std::sync::Arc;

/// What a watch did.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Readers move to this generation.
    Moved(&'a Snapshot),
    /// The new generation cannot be used. Readers stay with the one they have. Reported once for
    /// each new file.
    Refused(&'a crate::error::Error),
}

/// How a watch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchStatus {
    /// The file that readers read.
    pub path: PathBuf,
    /// How often readers were moved to a new generation.
    pub moved: u64,
    /// How many new generations were refused.
    pub refused: u64,
    /// Why the newest generation was refused, if it was.
    pub error: Option<String>,
}

/// How to watch.
///
/// ```no_run
/// use nuthatch_snapshot::WatchOptions;
/// let watch = WatchOptions::new().verify(true).path("features.nut")?;
/// let mut reader = watch.reader();
/// loop {
///     let snapshot = reader.current();
///     let name = snapshot.get_string(b"user:1.name")?;
///     # let _ = name; break;
/// }
/// # Ok::<(), nuthatch_snapshot::Error>(())
/// ```
#[derive(Clone)]
pub struct WatchOptions {
    open: OpenOptions,
    verify: bool,
    interval: Duration,
    report: std::sync::Arc<dyn Fn(&Event<'_>) + Send + Sync>,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            open: OpenOptions::default(),
            verify: false,
            interval: Duration::from_millis(250),
            report: std::sync::Arc::new(|_| ()),
        }
    }
}

impl WatchOptions {
    /// The defaults: look four times a second, check new files as [`OpenOptions::open`] does.
    pub fn new() -> Self {
        Self::default()
    }

    /// How new generations are opened.
    #[must_use]
    pub fn open_options(mut self, options: OpenOptions) -> Self {
        self.open = options;
        self
    }

    /// Whether new generations are verified whole before readers move to them.
    #[must_use]
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// How often to look for a new generation. Zero: only when [`Watch::refresh`] is called.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Calls `report` for every new generation, from the thread that looked for it.
    #[must_use]
    pub fn report(mut self, report: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.report = std::sync::Arc::new(report);
        self
    }

    /// Watches a path whose file is replaced by renaming another one over it.
    pub fn path(self, path: impl AsRef<Path>) -> Result<Watch> {
        Watch::start(self, Source::Path(path.as_ref().to_owned()))
    }

    /// Watches a name: whatever its pointer names as the latest generation.
    pub fn generations(self, generations: Generations) -> Result<Watch> {
        Watch::start(self, Source::Generations(generations))
    }
}

impl fmt::Debug for WatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchOptions")
            .field("open", &self.open)
            .field("verify", &self.verify)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

/// A snapshot that is replaced while it is read. Dropped, it stops looking; its readers keep what
/// they have.
#[derive(Debug)]
pub struct Watch {
    shared: std::sync::Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// One thread's view of a watch. Cheap to make and to clone; every thread has its own.
///
/// Reading through it takes no lock and counts no references: it looks at one number that changes
/// only with the generation.
#[derive(Clone, Debug)]
pub struct WatchReader {
    handle: Handle<Snapshot>,
}

impl WatchReader {
    /// The newest generation. What is borrowed from it stays as it is until the next call.
    ///
    /// The map of an old generation goes when every reader that had it has called this again, or is
    /// dropped.
    #[inline]
    pub fn current(&mut self) -> &Snapshot {
        self.handle.get()
    }
}

#[derive(Debug)]
struct Shared {
    options: WatchOptions,
    source: Source,
    cell: Arc<Cell<Snapshot>>,
    state: Mutex<State>,
    stop: Mutex<bool>,
    stopped: Condvar,
}

#[derive(Debug)]
struct State {
    /// The newest file that was looked at, taken or refused.
    seen: Identity,
    status: WatchStatus,
}

impl Watch {
    /// Watches a path with the default [`WatchOptions`].
    pub fn path(path: impl AsRef<Path>) -> Result<Self> {
        WatchOptions::default().path(path)
    }

    /// Watches a name with the default [`WatchOptions`].
    pub fn generations(name: impl Into<PathBuf>) -> Result<Self> {
        WatchOptions::default().generations(Generations::of(name))
    }

    fn start(options: WatchOptions, source: Source) -> Result<Self> {
        // Identified before it is opened: a file replaced in between is then opened once more.
        let (path, seen) = source.latest()?;
        let snapshot = open(&options, &path)?;
        let status = WatchStatus { path, moved: 0, refused: 0, error: None };
        let interval = options.interval;
        let shared = std::sync::Arc::new(Shared {
            options,
            source,
            cell: Arc::new(Cell::new(snapshot)),
            state: Mutex::new(State { seen, status }),
            stop: Mutex::new(false),
            stopped: Condvar::new(),
        });
        let thread = (!interval.is_zero()).then(|| {
            let shared = std::sync::Arc::clone(&shared);
            std::thread::spawn(move || shared.run(interval))
        });
        Ok(Self { shared, thread })
    }

    /// A view for one thread.
    pub fn reader(&self) -> WatchReader {
        WatchReader { handle: Handle::new(&self.shared.cell) }
    }

    /// Looks for a new generation now, and tells whether readers move to one. When the newest one
    /// is refused, [`status`](Self::status) tells why.
    pub fn refresh(&self) -> bool {
        self.shared.look()
    }

    /// How the watch stands.
    pub fn status(&self) -> WatchStatus {
        lock(&self.shared.state).status.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *lock(&self.shared.stop) = true;
        self.shared.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to answer; if a report panicked, that was printed there.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, interval: Duration) {
        let mut stop = lock(&self.stop);
        while !*stop {
            drop(stop);
            self.look();
            stop = lock(&self.stop);
            if !*stop {
                let waited = self.stopped.wait_timeout(stop, interval);
                stop = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Moves readers to the newest generation, if there is a new one and it is good.
    fn look(&self) -> bool {
        let mut state = lock(&self.state);
        let found = self.source.latest().and_then(|(path, identity)| {
            if identity == state.seen {
                return Ok(None);
            }
            state.seen = identity;
            open(&self.options, &path).map(|snapshot| Some((path, snapshot)))
        });
        match found {
            Ok(None) => false,
            Ok(Some((path, snapshot))) => {
                (self.options.report)(&Event::Moved(&snapshot));
                self.cell.replace(snapshot);
                let moved = state.status.moved + 1;
                state.status = WatchStatus { path, moved, error: None, ..state.status.clone() };
                true
            }
            Err(error) => {
                let text = error.to_string();
                // A pointer or file that is missing stays so for many looks.
                if state.status.error.as_ref() != Some(&text) {
                    (self.options.report)(&Event::Refused(&error));
                    state.status.refused += 1;
                    state.status.error = Some(text);
                }
                false
            }
        }
    }
}

fn open(options: &WatchOptions, path: &Path) -> Result<Snapshot> {
    let snapshot = options.open.open(path)?;
    if options.verify {
        snapshot.verify()?;
    }
    Ok(snapshot)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
