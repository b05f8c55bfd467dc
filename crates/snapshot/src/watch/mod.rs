//! Watching: readers switch to a new file while they read.

mod cell;
mod follow;
mod generations;
mod source;
mod status;
#[cfg(all(test, not(loom)))]
mod tests;

pub use generations::Generations;
pub use status::{Event, WatchStatus};

use crate::error::{Error, Result};
use crate::reader::{OpenOptions, Snapshot};
use cell::Handle;
use follow::{Follower, Report};
use source::Source;
use std::fmt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

/// Opens a generation.
type Opening = std::sync::Arc<dyn Fn(&Path) -> Result<Snapshot> + Send + Sync>;

/// Options of a watch.
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
    open: Opening,
    verify: bool,
    interval: Duration,
    report: Report,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            open: std::sync::Arc::new(|path| Snapshot::open(path)),
            verify: false,
            interval: Duration::from_millis(250),
            report: std::sync::Arc::new(|_| ()),
        }
    }
}

impl WatchOptions {
    /// Returns the default options: poll every 250 ms, open new generations with the default
    /// [`OpenOptions`], do not verify them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how generations are opened.
    #[must_use]
    pub fn open_options(self, options: OpenOptions) -> Self {
        self.open_with(move |path| options.open(path))
    }

    /// Sets the function that opens a generation, in place of
    /// [`open_options`](Self::open_options). It can reject one, such as one that is too large:
    /// readers keep the generation that they have. The error of a limit ([`Error::Limit`]) is
    /// retried as that of a system call.
    #[must_use]
    pub fn open_with(
        mut self,
        open: impl Fn(&Path) -> Result<Snapshot> + Send + Sync + 'static,
    ) -> Self {
        self.open = std::sync::Arc::new(open);
        self
    }

    /// Sets whether [`Snapshot::verify`] must succeed before readers switch to a generation.
    #[must_use]
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Sets the interval between polls for a new generation. With zero, only [`Watch::refresh`]
    /// polls.
    ///
    /// After a failed system call, a generation is retried after 1, 2, 4 … and at most 64
    /// intervals. A damaged generation is retried when its file changes, for a set the manifest.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets a callback for events. It is called for one event at a time, by the thread of the watch
    /// or by a thread that calls [`Watch::refresh`].
    ///
    /// The callback may call all methods of the watch. Events of a refresh within the callback are
    /// reported after it returns. If it panics, the watch stores the message in its status and
    /// continues.
    #[must_use]
    pub fn report(mut self, report: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.report = std::sync::Arc::new(report);
        self
    }

    /// Opens the file at a path and watches the path. A file is replaced by renaming another over
    /// it.
    ///
    /// # Errors
    /// Returns the error of opening or verifying the first file, or [`Error::Io`] if the thread of
    /// the watch cannot be started.
    pub fn path(self, path: impl AsRef<Path>) -> Result<Watch> {
        Watch::start(self, Source::Path(path.as_ref().to_owned()))
    }

    /// Opens the latest generation and watches the pointer file.
    ///
    /// # Errors
    /// Returns the error of opening or verifying the latest generation, or [`Error::Io`] if there
    /// is no generation or the thread of the watch cannot be started.
    pub fn generations(self, generations: Generations) -> Result<Watch> {
        Watch::start(self, Source::Generations(generations))
    }
}

impl fmt::Debug for WatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchOptions")
            .field("verify", &self.verify)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

/// A watch of a snapshot that is replaced while it is read.
///
/// When it is dropped, polling stops. The drop waits while the thread of the watch opens or
/// verifies a generation, or calls the callback. Readers keep the generations that they have.
#[derive(Debug)]
pub struct Watch {
    follower: std::sync::Arc<Follower>,
    thread: Option<JoinHandle<()>>,
}

/// The reader of one thread. Creating and cloning it is cheap, so every thread can have its own.
///
/// Reading takes no lock and counts no references. It loads one number, which changes only with the
/// generation. Only the first call after a switch takes a lock, briefly, and a reference.
#[derive(Clone, Debug)]
pub struct WatchReader {
    handle: Handle<Snapshot>,
}

impl WatchReader {
    /// Returns the newest generation. Values that are borrowed from it stay valid until the next
    /// call.
    ///
    /// This call never unmaps a file. The watch unmaps an old generation at the first poll after
    /// each of its readers has called `current` again or was dropped. Generations that are in use
    /// when the watch is dropped stay mapped until all its readers are dropped.
    #[inline]
    pub fn current(&mut self) -> &Snapshot {
        self.handle.get()
    }

    /// Returns the generation that the last call of [`current`](Self::current) returned, or that
    /// was the newest when this reader was created. So several reads can be of one generation.
    #[inline]
    pub fn last(&self) -> &Snapshot {
        self.handle.last()
    }
}

impl Watch {
    /// Watches a path with the default [`WatchOptions`].
    ///
    /// # Errors
    /// Returns the same errors as [`WatchOptions::path`].
    pub fn path(path: impl AsRef<Path>) -> Result<Self> {
        WatchOptions::default().path(path)
    }

    /// Watches the [`Generations`] of a name with the default [`WatchOptions`].
    ///
    /// # Errors
    /// Returns the same errors as [`WatchOptions::generations`].
    pub fn generations(name: impl Into<PathBuf>) -> Result<Self> {
        WatchOptions::default().generations(Generations::of(name))
    }

    fn start(options: WatchOptions, source: Source) -> Result<Self> {
        let WatchOptions { open, verify, interval, report } = options;
        let opener = Box::new(move |path: &Path| {
            let snapshot = open(path)?;
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

    /// Polls for a new generation now. Returns whether the watch switched to one. Retries a
    /// generation that was rejected before; if it is rejected again, [`status`](Self::status) has
    /// the error.
    ///
    /// Blocks while another thread opens or verifies a generation.
    pub fn refresh(&self) -> bool {
        self.follower.refresh()
    }

    /// Returns the status of the watch. Does not block while a generation is opened or verified.
    pub fn status(&self) -> WatchStatus {
        self.follower.status()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.follower.stop();
        if let Some(thread) = self.thread.take()
            // The callback may drop the watch, and a thread cannot join itself.
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread catches panics and returns nothing.
            let _ = thread.join();
        }
    }
}
