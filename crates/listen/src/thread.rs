//! The thread of a running server.

use crate::drain::{Lifecycle, Stopper};
use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Maximum wait for blocking threads of the runtime, such as those that read files, after the
/// server has ended.
const SHUTDOWN_TIME: Duration = Duration::from_secs(1);

/// Functions that write the log lines of a server. They belong to the crate of the server, since
/// the target of a log line must be a constant.
#[derive(Clone, Copy, Debug)]
pub struct LogLines {
    /// Logs that the server begins to drain.
    pub stopping: fn(),
    /// Logs that the server has stopped.
    pub stopped: fn(),
}

/// The thread of a running server. Dropping it stops the server and waits for its end.
#[derive(Debug)]
pub struct ServerThread<A = SocketAddr> {
    addresses: Vec<A>,
    lifecycle: Lifecycle,
    log: LogLines,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl<A> ServerThread<A> {
    /// Starts a thread with this name that runs `serve` on `runtime`. `serve` must return when
    /// `lifecycle` drains or ends. `addresses` are those of its listeners.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot start a thread.
    pub fn start(
        name: &str,
        runtime: Runtime,
        addresses: Vec<A>,
        (lifecycle, log): (Lifecycle, LogLines),
        serve: impl Future<Output = io::Result<()>> + Send + 'static,
    ) -> io::Result<Self> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let served = runtime.block_on(serve);
            runtime.shutdown_timeout(SHUTDOWN_TIME);
            served
        })?;
        Ok(Self { addresses, lifecycle, log, thread: Some(thread) })
    }

    /// Returns the addresses of the server, with the ports that the system selected for port 0.
    #[must_use]
    pub fn addresses(&self) -> &[A] {
        &self.addresses
    }

    /// Returns a handle that stops the server, from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { lifecycle: self.lifecycle.clone(), log: self.log.stopping }
    }

    /// Waits until the server has stopped.
    ///
    /// # Errors
    ///
    /// Fails with the error of `serve`, or if a thread of the server panicked.
    pub fn wait(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        (self.log.stopped)();
        ended
    }
}

impl<A> Drop for ServerThread<A> {
    fn drop(&mut self) {
        self.stopper().stop();
        // A caller that needs the error calls `wait`.
        let _ = self.join();
    }
}

/// Returns the default number of I/O threads: one for each core, up to 8; 2 if the number of cores
/// is unknown.
#[must_use]
pub fn default_threads() -> usize {
    thread::available_parallelism().map_or(2, usize::from).clamp(1, 8)
}
