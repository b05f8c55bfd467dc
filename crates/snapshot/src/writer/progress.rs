//! Progress of a build.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stage of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Sorting rows and resolving duplicates.
    Sorting,
    /// Writing the index and the data.
    Writing,
    /// Syncing the file to the disk.
    Syncing,
}

/// The progress of a stage of a build, from
/// [`WriterOptions::progress`](crate::WriterOptions::progress).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The stage.
    pub stage: Stage,
    /// Number of rows that this stage has processed.
    pub done: u64,
    /// Number of rows that this stage will process, or 0 for a stage that counts no rows.
    pub total: u64,
}

/// The progress callback of a build, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Reporter(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl Reporter {
    pub(crate) fn new(report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    /// Returns a reporter that reports what `map` returns.
    pub(crate) fn map(
        &self,
        map: impl Fn(Progress) -> Option<Progress> + Send + Sync + 'static,
    ) -> Self {
        Self(self.0.clone().map(|report| -> Arc<dyn Fn(Progress) + Send + Sync> {
            Arc::new(move |progress| {
                if let Some(progress) = map(progress) {
                    report(progress);
                }
            })
        }))
    }

    /// Starts a stage and reports it.
    pub(crate) fn start(&self, stage: Stage, total: u64) -> StageProgress<'_> {
        let progress = StageProgress { reporter: self, stage, done: AtomicU64::new(0), total };
        progress.advance(0);
        progress
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reporter").field(&self.0.is_some()).finish()
    }
}

/// The counter of one stage.
pub(crate) struct StageProgress<'a> {
    reporter: &'a Reporter,
    stage: Stage,
    done: AtomicU64,
    total: u64,
}

impl StageProgress<'_> {
    /// Adds processed rows and reports the sum.
    pub(crate) fn advance(&self, rows: u64) {
        if let Some(report) = &self.reporter.0 {
            let done = self.done.fetch_add(rows, Ordering::Relaxed) + rows;
            report(Progress { stage: self.stage, done, total: self.total });
        }
    }
}
