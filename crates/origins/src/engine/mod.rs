//! What all objects of a cache share: the folder, clients of origins, threads and counters.

pub(crate) mod cache_folder;
pub(crate) mod recent;
pub(crate) mod recorded;

use crate::counts::{Count, Tally};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::log_limit::LogLimit;
use crate::not_kept::NotKept;
use crate::origin::{Clients, Head};
use crate::retry::Fault;
use crate::settings::Settings;
use cache_folder::CacheFolder;
use nuthatch_chunks::{Key, TaskChunks};
use recent::remember;
use recorded::RecordedVersions;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// The number of threads that send requests to origins.
const ORIGIN_THREADS: usize = 2;

/// The time for which fetches do not wait for fetch locks of an object after one such wait timed
/// out.
const FETCH_LOCK_BACKOFF: Duration = Duration::from_secs(30);

/// The time for which an unavailable origin is not contacted again if the cache has a usable
/// version.
const UNAVAILABLE_TIME: Duration = Duration::from_secs(5);

pub(crate) struct Engine {
    pub(crate) folder: CacheFolder,
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    /// Limits the number of concurrent requests for blocks.
    pub(crate) permits: Semaphore,
    pub(crate) tally: Tally,
    pub(crate) log_limit: LogLimit,
    failures: Mutex<HashMap<Key, (Instant, Error)>>,
    heads: Mutex<HashMap<ObjectRequest, (Instant, Head)>>,
    pub(crate) recorded: RecordedVersions,
    /// Origins that could not be reached, and when.
    unavailable: Mutex<HashMap<String, (Instant, ())>>,
    /// Objects for whose fetch lock a fetch waited until the timeout, with the time of the timeout.
    fetch_lock_timeouts: Mutex<HashMap<Key, (Instant, ())>>,
    /// Runs requests. The executor of the caller is not used: it may differ for each call, and may
    /// end while other readers wait for the same bytes.
    runtime: Option<Runtime>,
    process: u32,
}

/// A request for the version of an object: the address as given, and the headers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectRequest {
    pub(crate) address: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Engine");
        shown.field("folder", &self.folder.path()).field("settings", &self.settings);
        shown.finish_non_exhaustive()
    }
}

impl Engine {
    pub(crate) fn new(folder: CacheFolder, settings: Settings) -> Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(ORIGIN_THREADS).thread_name("origins").enable_all();
        Ok(Self {
            runtime: Some(builder.build().map_err(|error| Error::setup("threads", error))?),
            folder,
            clients: Clients::new(&settings),
            permits: Semaphore::new(settings.max_requests),
            tally: Tally::default(),
            log_limit: LogLimit::default(),
            failures: Mutex::default(),
            heads: Mutex::default(),
            recorded: RecordedVersions::default(),
            unavailable: Mutex::default(),
            fetch_lock_timeouts: Mutex::default(),
            process: std::process::id(),
            settings,
        })
    }

    /// Returns whether this process started the threads, rather than a process that it was forked
    /// from.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Fails in a forked child, which has none of the threads.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.is_of_this_process() {
            return Ok(());
        }
        let reason = "the parent process opened this cache: open it again after fork".into();
        Err(Error::Setup { what: "requests", reason })
    }

    /// Runs a task that sends requests to an origin.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        self.check_process()?;
        let runtime = self.runtime.as_ref().map(|runtime| runtime.spawn(work));
        runtime.ok_or_else(Error::closed)
    }

    /// Returns the folder, opened again if that is needed. `None` while it cannot be opened.
    pub(crate) async fn tasks(self: &Arc<Self>) -> Option<TaskChunks> {
        if self.folder.needs_reopening() {
            let engine = self.clone();
            let reopen = move || engine.folder.reopen();
            // A cache that is being closed keeps its folder.
            let reopening = self.spawn(async { spawn_blocking(reopen).await });
            // Opening a folder again that could not be opened may take long: readers do not wait
            // for it.
            if let Ok(reopening) = reopening
                && self.folder.last().is_some()
            {
                let _ = reopening.await;
            }
        }
        self.folder.last()
    }

    /// Records whether an origin could be reached.
    pub(crate) fn note_reached(&self, site: &str, is_reached: bool) {
        let mut unavailable = lock(&self.unavailable);
        if is_reached {
            unavailable.remove(site);
        } else {
            remember(&mut unavailable, site.to_owned(), ());
        }
    }

    /// Returns whether an origin could not be reached within the last seconds.
    pub(crate) fn is_unavailable(&self, site: &str) -> bool {
        lock(&self.unavailable)
            .get(site)
            .is_some_and(|(since, ())| since.elapsed() < UNAVAILABLE_TIME)
    }

    /// Records that a wait for the fetch lock of an object timed out.
    pub(crate) fn note_fetch_lock_timeout(&self, key: &Key) {
        remember(&mut lock(&self.fetch_lock_timeouts), key.clone(), ());
    }

    /// Returns how long to wait for a process that holds the fetch lock of blocks of an object.
    pub(crate) fn fetch_lock_wait(&self, key: &Key) -> Duration {
        let fetch_lock_timeouts = lock(&self.fetch_lock_timeouts);
        let is_recent =
            fetch_lock_timeouts.get(key).is_some_and(|(at, ())| at.elapsed() < FETCH_LOCK_BACKOFF);
        if is_recent { Duration::ZERO } else { self.settings.fetch_lock_wait }
    }

    /// Waits for a response, and fails if the origin sends nothing for the read timeout.
    pub(crate) async fn with_read_timeout<T>(
        &self,
        request: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let read_timeout = self.settings.read_timeout;
        let silent = |_| Fault::broken(format!("no data for {read_timeout:?}"));
        timeout(read_timeout, request).await.map_err(silent)?
    }

    pub(crate) fn count(&self, count: Count, number: u64) {
        self.tally.add(count, number);
    }

    /// Logs when the folder stops storing blocks, and when it stores them again.
    pub(crate) fn note_put(&self, refusal: Option<NotKept>) {
        self.folder.note_put(refusal, &self.log_limit);
    }

    /// Records why a fetch failed, for the readers that wait for it.
    pub(crate) fn note_failure(&self, key: &Key, error: &Error) {
        remember(&mut lock(&self.failures), key.clone(), error.clone());
    }

    /// Returns why a fetch failed for which a reader has waited since then.
    pub(crate) fn failure_since(&self, key: &Key, since: Instant) -> Option<Error> {
        let failures = lock(&self.failures);
        failures.get(key).filter(|(at, _)| *at >= since).map(|(_, error)| error.clone())
    }

    pub(crate) fn note_head(&self, request: ObjectRequest, head: &Head) {
        if !self.settings.max_age.is_zero() {
            remember(&mut lock(&self.heads), request, head.clone());
        }
    }

    /// Returns the last response of an origin, if it can still be used without a new request.
    pub(crate) fn recent_head(&self, request: &ObjectRequest) -> Option<Head> {
        let heads = lock(&self.heads);
        let (at, head) = heads.get(request)?;
        (at.elapsed() < self.settings.max_age).then(|| head.clone())
    }

    /// Forgets the last response about an object, which has changed.
    pub(crate) fn forget_head(&self, request: &ObjectRequest) {
        lock(&self.heads).remove(request);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            // A forked child must not wait for threads of its parent.
            std::mem::forget((self.runtime.take(), self.folder.last()));
            return;
        }
        // This may run on a thread of the runtime, which must not wait for itself.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
