//! Work on the files of the cache, by a thread of the cache or by the calling thread.

use crate::reading::version::{CachedVersion, Version};
use nuthatch_chunks::{Chunks, Task};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Work that has begun.
pub(crate) enum FileTask<T> {
    Spawned(Task<T>),
    /// The result, until it is taken.
    Done(Option<T>),
}

impl<T: Send + 'static> FileTask<T> {
    pub(crate) fn begin(
        (version, cached): (&Arc<Version>, &Arc<CachedVersion>),
        may_block: bool,
        work: impl FnOnce(&Arc<Version>, &CachedVersion, &Chunks) -> T + Send + 'static,
    ) -> Self {
        let tasks = &cached.tasks;
        if may_block {
            return Self::Done(Some(work(version, cached, tasks.chunks())));
        }
        let (version, cached) = (version.clone(), cached.clone());
        Self::Spawned(tasks.run(move |chunks| work(&version, &cached, chunks)))
    }

    /// Returns the result once.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<T> {
        match self {
            Self::Spawned(task) => Pin::new(task).poll(context),
            Self::Done(done) => done.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}
