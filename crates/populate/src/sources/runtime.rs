//! The runtime of a connection to a database.

use crate::error::{Error, Result};
use std::future::Future;
use tokio::runtime::{Builder, Runtime};

/// A runtime on the thread of its caller. When it is dropped, it does not wait for its other
/// threads: a lookup of the name of a host can take long.
pub(super) struct ConnectionRuntime {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl ConnectionRuntime {
    /// Starts a runtime.
    pub(super) fn start() -> Result<Self> {
        let built = Builder::new_current_thread().enable_all().build();
        let runtime = built.map_err(|error| Error::System(format!("start a runtime: {error}")))?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs a future to its end, and the tasks that it spawns meanwhile.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("a runtime").block_on(future)
    }
}

impl Drop for ConnectionRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
