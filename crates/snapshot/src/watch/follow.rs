//! Looks for new generations, moves readers to them and reports what happened.
//!
//! Three locks, never held at once but in this order: `progress` while a generation is looked for,
//! opened and verified, `status` for a moment, `events` for a moment. The callback is called
//! without any of them.

use super::cell::Cell;
use super::source::{Identity, Source};
use super::{Event, WatchStatus};
use crate::error::{Error, Result};
use crate::reader::Snapshot;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(loom)]
use loom::sync::Arc;
#[cfg(not(loom))]
use std::sync::Arc;

/// Maximum number of polls that pass before a generation that could not be opened is tried again.
const MAX_SKIPPED_POLLS: u32 = 63;

/// Opens a generation, and verifies it if that was asked for.
pub(super) type Opener = Box<dyn Fn(&Path) -> Result<Snapshot> + Send + Sync>;

/// The callback for events.
pub(super) type Report = std::sync::Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// The part of a watch that its thread and its owner share.
pub(super) struct Follower {
    open: Opener,
    report: Report,
    source: Source,
    pub(super) cell: Arc<Cell<Snapshot>>,
    progress: Mutex<Progress>,
    status: Mutex<WatchStatus>,
    events: Mutex<Events>,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
}

/// What was found so far.
struct Progress {
    /// The file that readers read.
    current: Identity,
    refused: Option<Refused>,
}

/// A generation that could not be used.
struct Refused {
    identity: Identity,
    error: String,
    /// The system refused to open or read it, which may change; damage does not.
    is_transient: bool,
    failures: u32,
    polls_to_skip: u32,
}

/// Events in the order in which they happened.
#[derive(Default)]
struct Events {
    queue: VecDeque<Happened>,
    /// A thread is calling the callback, and will also do so for events that are added meanwhile.
    is_delivering: bool,
}

enum Happened {
    Moved(Arc<Snapshot>),
    Refused(Error),
}

/// What a look found.
enum Found {
    /// The newest generation is the one that readers have.
    Same,
    /// The newest generation was refused before, with this error.
    RefusedBefore(String),
    New(PathBuf, Box<Snapshot>),
    Failed(Error),
}

impl Follower {
    pub(super) fn start(source: Source, open: Opener, report: Report) -> Result<Self> {
        // Identified before it is opened: a file replaced in between is then opened once more.
        let (path, current) = source.latest()?;
        let cell = Arc::new(Cell::new(open(&path)?));
        let status = WatchStatus { path, moved: 0, refused: 0, error: None, panic: None };
        Ok(Self {
            open,
            report,
            source,
            cell,
            progress: Mutex::new(Progress { current, refused: None }),
            status: Mutex::new(status),
            events: Mutex::default(),
            is_stopped: Mutex::new(false),
            stopped: Condvar::new(),
        })
    }

    /// Polls until [`stop`](Self::stop) is called.
    pub(super) fn run(&self, interval: Duration) {
        let mut is_stopped = lock(&self.is_stopped);
        while !*is_stopped {
            drop(is_stopped);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.poll())) {
                self.note_panic(&*panic);
            }
            is_stopped = lock(&self.is_stopped);
            if !*is_stopped {
                let waited = self.stopped.wait_timeout(is_stopped, interval);
                is_stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    pub(super) fn stop(&self) {
        *lock(&self.is_stopped) = true;
        self.stopped.notify_all();
        self.cell.reclaim();
    }

    pub(super) fn status(&self) -> WatchStatus {
        lock(&self.status).clone()
    }

    /// Looks for a new generation. One that could not be opened is tried again with back-off.
    /// Returns whether readers move.
    pub(super) fn poll(&self) -> bool {
        self.look(false)
    }

    /// Looks for a new generation, and tries one that was refused again.
    pub(super) fn refresh(&self) -> bool {
        self.look(true)
    }

    fn look(&self, retry_now: bool) -> bool {
        let mut progress = lock(&self.progress);
        let found = self.find(&mut progress, retry_now);
        let is_moved = matches!(found, Found::New(..));
        let happened = self.take(found);
        self.cell.reclaim();
        // Queued before another look can begin, so that events come in order.
        lock(&self.events).queue.extend(happened);
        drop(progress);
        self.deliver();
        is_moved
    }

    fn find(&self, progress: &mut Progress, retry_now: bool) -> Found {
        let (path, identity) = match self.source.latest() {
            Ok(latest) => latest,
            Err(error) => return Found::Failed(error),
        };
        if identity == progress.current {
            progress.refused = None;
            return Found::Same;
        }
        let mut before = progress.refused.take().filter(|refused| refused.identity == identity);
        if let Some(refused) = before.as_mut().filter(|_| !retry_now)
            && (!refused.is_transient || refused.polls_to_skip > 0)
        {
            refused.polls_to_skip = refused.polls_to_skip.saturating_sub(1);
            let error = refused.error.clone();
            progress.refused = before;
            return Found::RefusedBefore(error);
        }
        match (self.open)(&path) {
            Ok(snapshot) => {
                progress.current = identity;
                Found::New(path, Box::new(snapshot))
            }
            Err(error) => {
                let failures = before.map_or(0, |refused| refused.failures).saturating_add(1);
                progress.refused = Some(Refused {
                    identity,
                    error: error.to_string(),
                    is_transient: matches!(error, Error::Io(_) | Error::Unreadable(_)),
                    failures,
                    polls_to_skip: (1 << (failures - 1).min(16)).min(MAX_SKIPPED_POLLS + 1) - 1,
                });
                Found::Failed(error)
            }
        }
    }

    /// Moves readers to a new generation, and brings the status up to date. Returns what to report.
    fn take(&self, found: Found) -> Option<Happened> {
        match found {
            Found::Same => {
                lock(&self.status).error = None;
                None
            }
            Found::RefusedBefore(error) => {
                lock(&self.status).error = Some(error);
                None
            }
            Found::New(path, snapshot) => {
                let snapshot = self.cell.replace(*snapshot);
                let mut status = lock(&self.status);
                let moved = status.moved + 1;
                *status = WatchStatus { path, moved, error: None, ..status.clone() };
                Some(Happened::Moved(snapshot))
            }
            Found::Failed(error) => {
                let text = error.to_string();
                let mut status = lock(&self.status);
                // A pointer or file that is missing stays so for many looks.
                if status.error.as_ref() == Some(&text) {
                    return None;
                }
                status.refused += 1;
                status.error = Some(text);
                Some(Happened::Refused(error))
            }
        }
    }

    /// Calls the callback for all events, unless a thread is already doing that: perhaps this one,
    /// from within the callback.
    fn deliver(&self) {
        let mut events = lock(&self.events);
        if events.is_delivering {
            return;
        }
        events.is_delivering = true;
        while let Some(happened) = events.queue.pop_front() {
            drop(events);
            let call = AssertUnwindSafe(|| match &happened {
                Happened::Moved(snapshot) => (self.report)(&Event::Moved(snapshot)),
                Happened::Refused(error) => (self.report)(&Event::Refused(error)),
            });
            if let Err(panic) = catch_unwind(call) {
                self.note_panic(&*panic);
            }
            drop(happened);
            events = lock(&self.events);
        }
        events.is_delivering = false;
    }

    fn note_panic(&self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        lock(&self.status).panic = Some(text.unwrap_or_else(|| "a panic".to_owned()));
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("source", &self.source).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
