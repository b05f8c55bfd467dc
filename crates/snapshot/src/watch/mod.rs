//! Following a snapshot that is replaced while it is read.

mod cell;
mod follow;
mod generations;
mod source;
#[cfg(all(test, not(loom)))]
mod tests;

pub use generations::Generations;

use crate::error::{Error, Result};
use crate::reader::{OpenOptions, Snapshot};
use cell::Handle;
use follow::{Follower, Report};
use source::Source;
use std::fmt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

/// What happened to a watch.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Readers get this generation at their next call.
    Moved(&'a Snapshot),
    /// The new generation cannot be used, and readers keep the one they have. Reported when the
    /// error is another than before.
    Refused(&'a crate::error::Error),
}

/// The state of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchStatus {
    /// The file that readers read.
    pub path: PathBuf,
    /// Number of times that readers were moved to a new generation.
    pub moved: u64,
    /// Number of errors that were reported.
    pub refused: u64,
    /// Why readers do not have the newest generation; `None` if they have it.
    pub error: Option<String>,
    /// The message of the last panic of the callback, if it ever panicked.
    pub panic: Option<String>,
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
    report: Report,
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
    /// Returns the defaults: look four times a second, check new files as [`OpenOptions::open`]
    /// does.
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

    /// Sets how often to look for a new generation. Zero: only when [`Watch::refresh`] is called.
    ///
    /// A generation that the system refuses to open is tried again after 1, 2, 4 … and at most 64
    /// intervals; a damaged one when its file changes.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Calls `report` for every event, one after the other, from a thread that looks for new
    /// generations.
    ///
    /// The callback may call anything of the watch; events of a refresh within it follow when it
    /// returns. If it panics, the panic is noted in the status, and the watch goes on.
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
    follower: std::sync::Arc<Follower>,
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
    /// Never unmaps a file. The watch unmaps an old generation at its first poll after every reader
    /// that had it has called this again or was dropped. Old generations that are still in use when
    /// the watch is dropped stay mapped until all its readers are dropped, too.
    #[inline]
    pub fn current(&mut self) -> &Snapshot {
        self.handle.get()
    }
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
        let WatchOptions { open, verify, interval, report } = options;
        let opener = Box::new(move |path: &Path| {
            let snapshot = open.open(path)?;
            if verify {
                snapshot.verify()?;
            }
            Ok(snapshot)
        });
        Self::start_with(Follower::start(source, opener, report)?, interval)
    }

    fn start_with(follower: Follower, interval: Duration) -> Result<Self> {
        let follower = std::sync::Arc::new(follower);
        let thread = if interval.is_zero() {
            None
        } else {
            let follower = std::sync::Arc::clone(&follower);
            let path = follower.status().path;
            let named = std::thread::Builder::new().name("nuthatch-watch".to_owned());
            let thread = named.spawn(move || follower.run(interval));
            Some(thread.map_err(|e| Error::io(&path, "start a thread to watch", e))?)
        };
        Ok(Self { follower, thread })
    }

    /// Returns a reader for one thread.
    pub fn reader(&self) -> WatchReader {
        WatchReader { handle: Handle::new(&self.follower.cell) }
    }

    /// Looks for a new generation now, and returns whether readers move to one. Retries a
    /// generation that was refused before; if it is refused again, [`status`](Self::status) has the
    /// error.
    ///
    /// Waits while another thread opens or verifies a generation.
    pub fn refresh(&self) -> bool {
        self.follower.refresh()
    }

    /// Returns the state of the watch, without waiting for a generation that is being opened.
    pub fn status(&self) -> WatchStatus {
        self.follower.status()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.follower.stop();
        if let Some(thread) = self.thread.take()
            // The callback may drop the watch, and a thread cannot wait for itself.
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread catches panics and returns nothing.
            let _ = thread.join();
        }
    }
}
