//! A thread of the cluster that uses the cache.

use super::Cluster;
use nuthatch_cache::Session;
use rustix::process::setpriority_process;
use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// The nice value: requests of clients come first, and about a tenth of a processor is left to the
/// thread if they need all of it.
const NICE: i32 = 10;

/// A thread with a session of the cache, which runs until the server stops. Dropping it makes all
/// threads of the cluster end, and waits for this one.
pub(crate) struct SlotThread {
    cluster: Arc<Cluster>,
    thread: Option<JoinHandle<()>>,
}

impl SlotThread {
    /// Starts a thread with this name.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started, or if no session of the cache is free.
    pub(super) fn start(
        cluster: Arc<Cluster>,
        name: &str,
        run: impl FnOnce(&Cluster, Session<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let (opened, is_opened) = mpsc::channel();
        let shared = Arc::clone(&cluster);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Without permission it has the priority of the others.
            let _ = setpriority_process(None, NICE);
            match shared.cache.session() {
                Ok(session) => {
                    let _ = opened.send(Ok(()));
                    run(&shared, session);
                }
                Err(error) => {
                    let _ = opened.send(Err(io::Error::other(error)));
                }
            }
        })?;
        let started = Self { cluster, thread: Some(thread) };
        is_opened.recv().map_err(|_| io::Error::other("a thread did not start"))??;
        Ok(started)
    }
}

impl fmt::Debug for SlotThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotThread").finish_non_exhaustive()
    }
}

impl Drop for SlotThread {
    fn drop(&mut self) {
        self.cluster.transitions().is_stopping = true;
        self.cluster.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic has stopped the program already: see `Running::wait`.
            let _ = thread.join();
        }
    }
}
