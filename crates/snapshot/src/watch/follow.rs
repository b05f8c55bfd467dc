//! Polling for new generations, switching readers to them and reporting events.
//!
//! There are three locks. A thread that holds several takes them in this order: `progress`, held
//! while a generation is found, opened and verified; `status` and `events`, held briefly. The
//! callback is called without any of them.

use super::cell::Cell;
use super::source::{Identity, Source};
use super::status::{Event, WatchStatus};
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

/// Maximum number of polls that are skipped before a generation that failed is retried.
const MAX_SKIPPED_POLLS: u32 = 63;

/// Opens a generation, and verifies it if the options require that.
pub(super) type Opener = Box<dyn Fn(&Path) -> Result<Snapshot> + Send + Sync>;

/// The callback for events.
pub(super) type Report = std::sync::Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// The part of a watch that its owner and its thread share.
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

/// The result of the polls so far.
struct Progress {
    /// The file that readers read.
    current: Identity,
    rejected: Option<RejectedGeneration>,
}

/// A generation that cannot be used.
struct RejectedGeneration {
    identity: Identity,
    error: String,
    /// Whether a retry may succeed: after a failed system call or a limit, not after damage.
    is_transient: bool,
    /// Number of failures.
    failures: u32,
    /// Number of polls before the next retry.
    polls_to_skip: u32,
}

/// Events that are not reported yet, in order.
#[derive(Default)]
struct Events {
    queue: VecDeque<OwnedEvent>,
    /// Whether a thread is calling the callback. It also reports events that are added meanwhile.
    is_delivering: bool,
}

/// An [`Event`] in the queue.
enum OwnedEvent {
    Switched(Arc<Snapshot>),
    Rejected(Error),
}

/// The result of a poll.
enum PollResult {
    /// Readers have the newest generation.
    Unchanged,
    /// The newest generation was rejected before, with this error.
    RejectedBefore(String),
    /// A new generation was opened.
    New(PathBuf, Box<Snapshot>),
    /// The newest generation was rejected.
    Failed(Error),
}

impl Follower {
    /// Opens the newest generation.
    pub(super) fn start(source: Source, open: Opener, report: Report) -> Result<Self> {
        // Identified before it is opened: if the file is replaced in between, the new one is opened
        // by the first poll.
        let (path, current) = source.latest()?;
        let cell = Arc::new(Cell::new(open(&path)?));
        let status = WatchStatus { path, switched: 0, rejected: 0, error: None, panic: None };
        Ok(Self {
            open,
            report,
            source,
            cell,
            progress: Mutex::new(Progress { current, rejected: None }),
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
                self.record_panic(&*panic);
            }
            is_stopped = lock(&self.is_stopped);
            if !*is_stopped {
                let waited = self.stopped.wait_timeout(is_stopped, interval);
                is_stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Makes [`run`](Self::run) return.
    pub(super) fn stop(&self) {
        *lock(&self.is_stopped) = true;
        self.stopped.notify_all();
        self.cell.reclaim();
    }

    /// Returns the status.
    pub(super) fn status(&self) -> WatchStatus {
        lock(&self.status).clone()
    }

    /// Polls for a new generation. Retries a rejected one with exponential back-off. Returns
    /// whether readers switch.
    pub(super) fn poll(&self) -> bool {
        self.poll_with(false)
    }

    /// Polls for a new generation. Retries a rejected one at once. Returns whether readers switch.
    pub(super) fn refresh(&self) -> bool {
        self.poll_with(true)
    }

    fn poll_with(&self, retry_now: bool) -> bool {
        let mut progress = lock(&self.progress);
        let result = self.open_newest(&mut progress, retry_now);
        let is_switched = matches!(result, PollResult::New(..));
        let event = self.apply(result);
        self.cell.reclaim();
        // Queued before another poll can begin, so that events are in order.
        lock(&self.events).queue.extend(event);
        drop(progress);
        self.deliver();
        is_switched
    }

    /// Opens the newest generation, unless readers have it or it is not to be retried yet.
    fn open_newest(&self, progress: &mut Progress, retry_now: bool) -> PollResult {
        let (path, identity) = match self.source.latest() {
            Ok(latest) => latest,
            Err(error) => return PollResult::Failed(error),
        };
        if identity == progress.current {
            progress.rejected = None;
            return PollResult::Unchanged;
        }
        let mut before = progress.rejected.take().filter(|rejected| rejected.identity == identity);
        if let Some(rejected) = before.as_mut().filter(|_| !retry_now)
            && (!rejected.is_transient || rejected.polls_to_skip > 0)
        {
            rejected.polls_to_skip = rejected.polls_to_skip.saturating_sub(1);
            let error = rejected.error.clone();
            progress.rejected = before;
            return PollResult::RejectedBefore(error);
        }
        match (self.open)(&path) {
            Ok(snapshot) => {
                progress.current = identity;
                PollResult::New(path, Box::new(snapshot))
            }
            Err(error) => {
                let failures = before.map_or(0, |rejected| rejected.failures).saturating_add(1);
                progress.rejected = Some(RejectedGeneration {
                    identity,
                    error: error.to_string(),
                    is_transient: matches!(
                        error,
                        Error::Io(_) | Error::Unreadable(_) | Error::Limit(_)
                    ),
                    failures,
                    polls_to_skip: (1 << (failures - 1).min(16)).min(MAX_SKIPPED_POLLS + 1) - 1,
                });
                PollResult::Failed(error)
            }
        }
    }

    /// Switches readers to a new generation and updates the status. Returns the event to report.
    fn apply(&self, result: PollResult) -> Option<OwnedEvent> {
        match result {
            PollResult::Unchanged => {
                lock(&self.status).error = None;
                None
            }
            PollResult::RejectedBefore(error) => {
                lock(&self.status).error = Some(error);
                None
            }
            PollResult::New(path, snapshot) => {
                let snapshot = self.cell.replace(*snapshot);
                let mut status = lock(&self.status);
                let switched = status.switched + 1;
                *status = WatchStatus { path, switched, error: None, ..status.clone() };
                Some(OwnedEvent::Switched(snapshot))
            }
            PollResult::Failed(error) => {
                let text = error.to_string();
                let mut status = lock(&self.status);
                // A missing file is reported once, not at every poll.
                if status.error.as_ref() == Some(&text) {
                    return None;
                }
                status.rejected += 1;
                status.error = Some(text);
                Some(OwnedEvent::Rejected(error))
            }
        }
    }

    /// Calls the callback for all queued events, unless a thread is doing that already. It may be
    /// this thread, if the callback calls [`refresh`](Self::refresh).
    fn deliver(&self) {
        let mut events = lock(&self.events);
        if events.is_delivering {
            return;
        }
        events.is_delivering = true;
        while let Some(event) = events.queue.pop_front() {
            drop(events);
            let call = AssertUnwindSafe(|| match &event {
                OwnedEvent::Switched(snapshot) => (self.report)(&Event::Switched(snapshot)),
                OwnedEvent::Rejected(error) => (self.report)(&Event::Rejected(error)),
            });
            if let Err(panic) = catch_unwind(call) {
                self.record_panic(&*panic);
            }
            drop(event);
            events = lock(&self.events);
        }
        events.is_delivering = false;
    }

    /// Stores the message of a panic in the status.
    fn record_panic(&self, panic: &(dyn Any + Send)) {
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
