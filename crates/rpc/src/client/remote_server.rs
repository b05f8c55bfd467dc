//! The address of a server, and whether it has responded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The server that a client calls.
#[derive(Debug)]
pub(super) struct RemoteServer {
    address: String,
    has_responded: AtomicBool,
}

impl RemoteServer {
    pub(super) fn new(address: &str) -> Arc<Self> {
        Arc::new(Self { address: address.to_owned(), has_responded: AtomicBool::new(false) })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn has_responded(&self) -> bool {
        self.has_responded.load(Ordering::Relaxed)
    }

    pub(super) fn note_response(&self) {
        // Written only once, so that the cache line stays shared between threads.
        if !self.has_responded() {
            self.has_responded.store(true, Ordering::Relaxed);
        }
    }
}
