//! What all objects of a cache share: the folder, clients, threads, counts.

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
use recorded::Recorded;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// How many threads talk to origins.
const TALKERS: usize = 2;

/// How long claims on an object are not waited for after a process did nothing about one.
const UNCLAIMED: Duration = Duration::from_secs(30);

/// How long an unavailable origin is not asked again if the cache has a usable version.
const AWAY: Duration = Duration::from_secs(5);

pub(crate) struct Engine {
    pub(crate) folder: CacheFolder,
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    /// For requests for blocks.
    pub(crate) permits: Semaphore,
    pub(crate) tally: Tally,
    pub(crate) log_limit: LogLimit,
    failures: Mutex<HashMap<Key, (Instant, Error)>>,
    heads: Mutex<HashMap<Asked, (Instant, Head)>>,
    pub(crate) recorded: Recorded,
    /// Origins that could not be reached, and when.
    away: Mutex<HashMap<String, (Instant, ())>>,
    /// Objects of which another process had claimed blocks that it did not fetch, and when that was
    /// found.
    unfetched: Mutex<HashMap<Key, (Instant, ())>>,
    /// Requests and what they wait for run here, not on the executor of the caller: that may be
    /// another one for each call, or go while others wait for the same bytes.
    runtime: Option<Runtime>,
    process: u32,
}

/// What was asked of an origin: an address as it was given, and what was shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) address: String,
    pub(crate) shown: Vec<(String, String)>,
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
        builder.worker_threads(TALKERS).thread_name("origins").enable_all();
        Ok(Self {
            runtime: Some(builder.build().map_err(|error| Error::setup("threads", error))?),
            folder,
            clients: Clients::new(&settings),
            permits: Semaphore::new(settings.requests_at_once),
            tally: Tally::default(),
            log_limit: LogLimit::default(),
            failures: Mutex::default(),
            heads: Mutex::default(),
            recorded: Recorded::default(),
            away: Mutex::default(),
            unfetched: Mutex::default(),
            process: std::process::id(),
            settings,
        })
    }

    /// Whether its threads are of this process, and not of one that it was forked from.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Fails in a child that was forked: it has none of the threads.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.is_of_this_process() {
            return Ok(());
        }
        let reason = "opened before the process was forked: to be opened anew".into();
        Err(Error::Setup { what: "requests", reason })
    }

    /// Has a task talk to an origin.
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
            // A cache that is being closed keeps the folder that it has.
            let reopening = self.spawn(async { spawn_blocking(reopen).await });
            // One that could not be opened may take as long again: a reader does not wait for it.
            if let Ok(reopening) = reopening
                && self.folder.last().is_some()
            {
                let _ = reopening.await;
            }
        }
        self.folder.last()
    }

    /// Records that an origin could not be reached, or that it could.
    pub(crate) fn note_reached(&self, site: &str, is_reached: bool) {
        let mut away = lock(&self.away);
        if is_reached {
            away.remove(site);
        } else {
            remember(&mut away, site.to_owned(), ());
        }
    }

    /// Returns whether an origin could not be reached within the last seconds.
    pub(crate) fn is_away(&self, site: &str) -> bool {
        lock(&self.away).get(site).is_some_and(|(since, ())| since.elapsed() < AWAY)
    }

    /// Records that another process had claimed blocks of an object and did not fetch them.
    pub(crate) fn note_unfetched(&self, key: &Key) {
        remember(&mut lock(&self.unfetched), key.clone(), ());
    }

    /// Returns how long to wait for a process that has claimed blocks of an object.
    pub(crate) fn claim_wait(&self, key: &Key) -> Duration {
        let unfetched = lock(&self.unfetched);
        let is_recent = unfetched.get(key).is_some_and(|(at, ())| at.elapsed() < UNCLAIMED);
        if is_recent { Duration::ZERO } else { self.settings.claim_wait }
    }

    /// Waits for an origin, but not for one that has fallen silent.
    pub(crate) async fn in_time<T>(
        &self,
        asked: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let silent_most = self.settings.silent_most;
        let silent = |_| Fault::broken(format!("nothing came for {silent_most:?}"));
        timeout(silent_most, asked).await.map_err(silent)?
    }

    pub(crate) fn count(&self, count: Count, number: u64) {
        self.tally.add(count, number);
    }

    /// Logs when blocks begin not to be kept, and when they are kept again.
    pub(crate) fn note_put(&self, refusal: Option<NotKept>) {
        self.folder.note_put(refusal, &self.log_limit);
    }

    /// Tells those who wait for a fetch why it failed.
    pub(crate) fn note_failure(&self, key: &Key, error: &Error) {
        remember(&mut lock(&self.failures), key.clone(), error.clone());
    }

    /// Why a fetch failed that somebody waited for since then.
    pub(crate) fn failure_since(&self, key: &Key, since: Instant) -> Option<Error> {
        let failures = lock(&self.failures);
        failures.get(key).filter(|(at, _)| *at >= since).map(|(_, error)| error.clone())
    }

    pub(crate) fn note_head(&self, asked: Asked, head: &Head) {
        if !self.settings.believe.is_zero() {
            remember(&mut lock(&self.heads), asked, head.clone());
        }
    }

    /// What an origin said, if that is believed still.
    pub(crate) fn believed_head(&self, asked: &Asked) -> Option<Head> {
        let heads = lock(&self.heads);
        let (at, head) = heads.get(asked)?;
        (at.elapsed() < self.settings.believe).then(|| head.clone())
    }

    /// The object was found to be another one.
    pub(crate) fn forget_head(&self, asked: &Asked) {
        lock(&self.heads).remove(asked);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            // Threads that a parent has cannot be waited for.
            std::mem::forget((self.runtime.take(), self.folder.last()));
            return;
        }
        // It may be a thread of the runtime, or of another one, that drops this.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
