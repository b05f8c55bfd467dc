//! Closes idle connections while the process has no free file descriptor.
//!
//! The limit of connections does not help then: clients beyond it are served because they are
//! accepted first, which needs a descriptor.

use crate::accept::MAX_WAITING;
use crate::activity::Activity;
use crate::slots::ConnectionSlots;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The descriptors of the connections of all listeners of an endpoint.
#[derive(Debug)]
pub(super) struct Descriptors {
    /// Has no free slot: each client that waits for one is a request to close a connection.
    slots: ConnectionSlots,
    /// Time without a request after which a connection is idle.
    idle: Duration,
}

impl Descriptors {
    pub(super) fn new(idle: Duration) -> Self {
        Self { slots: ConnectionSlots::new(0), idle }
    }

    /// Requests that the connections that have been idle for longest are closed, if this error says
    /// that no descriptor is free. Several, since clients of other listeners need descriptors too.
    ///
    /// # Panics
    ///
    /// If it is called outside of a tokio runtime.
    pub(super) fn note_accept_failed(self: &Arc<Self>, error: &io::Error) {
        let code = error.raw_os_error();
        if ![Errno::MFILE, Errno::NFILE].iter().any(|none| code == Some(none.raw_os_error())) {
            return;
        }
        for _ in 0..MAX_WAITING {
            let all = Arc::clone(self);
            // A connection may take twice its limit until it counts as idle.
            tokio::spawn(async move { timeout(all.idle * 2, all.slots.acquire()).await });
        }
    }

    /// Waits until this idle connection must be closed, so that its descriptor becomes free.
    pub(super) async fn must_yield(&self, activity: &Activity) {
        self.slots.must_yield(activity, self.idle).await;
    }
}
