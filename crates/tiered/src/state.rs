//! Whether the tier works, its counters, and where events go.

use crate::options::Event;
use crate::stats::Counters;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// State that all threads of a tier share.
pub(crate) struct State {
    pub(crate) counters: Counters,
    is_off: AtomicBool,
    has_log_failed: AtomicBool,
    is_stopping: AtomicBool,
    is_dump_cancelled: AtomicBool,
    pub(crate) is_recovering: AtomicBool,
    on_event: Arc<dyn Fn(Event) + Send + Sync>,
}

impl State {
    pub(crate) fn new(on_event: Arc<dyn Fn(Event) + Send + Sync>) -> Self {
        Self {
            counters: Counters::default(),
            is_off: AtomicBool::new(false),
            has_log_failed: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            is_dump_cancelled: AtomicBool::new(false),
            is_recovering: AtomicBool::new(false),
            on_event,
        }
    }

    pub(crate) fn report(&self, event: Event) {
        (self.on_event)(event);
    }

    /// Ends writing because of an error. What is on disk remains readable.
    pub(crate) fn fail(&self, error: &dyn Display) {
        if !self.is_off.swap(true, Ordering::SeqCst) {
            self.report(Event::Off { error: error.to_string() });
        }
    }

    /// Reports the first time that the removal log could not be written.
    pub(crate) fn report_log_failure(&self, error: &dyn Display) {
        if !self.has_log_failed.swap(true, Ordering::SeqCst) {
            self.report(Event::LogFailed { error: error.to_string() });
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.is_off.load(Ordering::SeqCst)
    }

    /// Makes all threads end.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Makes the dump end.
    pub(crate) fn cancel_dump(&self) {
        self.is_dump_cancelled.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_dump_cancelled(&self) -> bool {
        self.is_dump_cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }
}
