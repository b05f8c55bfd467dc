//! Work on the files of the cache: by a thread of the cache, or by this one, if it may wait.

use crate::reading::version::{Kept, Version};
use nuthatch_chunks::{Chunks, Task};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Work that was begun.
pub(crate) enum Work<T> {
    Elsewhere(Task<T>),
    /// Done, and not taken yet.
    Here(Option<T>),
}

impl<T: Send + 'static> Work<T> {
    pub(crate) fn begin(
        (version, kept): (&Arc<Version>, &Arc<Kept>),
        may_wait: bool,
        work: impl FnOnce(&Arc<Version>, &Kept, &Chunks) -> T + Send + 'static,
    ) -> Self {
        let tasks = &kept.tasks;
        if may_wait {
            return Self::Here(Some(work(version, kept, tasks.chunks())));
        }
        let (version, kept) = (version.clone(), kept.clone());
        Self::Elsewhere(tasks.run(move |chunks| work(&version, &kept, chunks)))
    }

    /// Answers once.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<T> {
        match self {
            Self::Elsewhere(task) => Pin::new(task).poll(context),
            Self::Here(done) => done.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}
