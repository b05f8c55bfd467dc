//! How far a build is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a build is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Sorting rows and resolving duplicates.
    Sorting,
    /// Writing the index and the data.
    Writing,
    /// Waiting until everything is on the disk.
    Syncing,
}

/// How far a stage is. A total of zero means that it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The stage.
    pub stage: Stage,
    /// Rows done.
    pub done: u64,
    /// Rows to do.
    pub total: u64,
}

/// Whom to tell.
#[derive(Clone, Default)]
pub(crate) struct Reporter(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl Reporter {
    pub(crate) fn new(report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    pub(crate) fn start(&self, stage: Stage, total: u64) -> Steps<'_> {
        let steps = Steps { reporter: self, stage, done: AtomicU64::new(0), total };
        steps.advance(0);
        steps
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reporter").field(&self.0.is_some()).finish()
    }
}

/// The steps of one stage.
pub(crate) struct Steps<'a> {
    reporter: &'a Reporter,
    stage: Stage,
    done: AtomicU64,
    total: u64,
}

impl Steps<'_> {
    pub(crate) fn advance(&self, rows: u64) {
        if let Some(report) = &self.reporter.0 {
            let done = self.done.fetch_add(rows, Ordering::Relaxed) + rows;
            report(Progress { stage: self.stage, done, total: self.total });
        }
    }
}
