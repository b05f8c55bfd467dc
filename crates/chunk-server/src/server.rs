//! A running server, from the first to listen to the last to stop.

use crate::connections::Serving;
use crate::figures::{Tally, by_label, one};
use crate::options::Options;
use crate::reload::{Credentials, Reloader};
use nuthatch_listen::{Room, bind};
use nuthatch_origins::{LogLimit, NotKept, ObjectCache, Prefix};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::info;

/// How long threads have to finish what they read.
const FAREWELL: Duration = Duration::from_secs(1);

/// How far a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// What is under way may go on for a while.
    Draining,
    /// Nothing goes on.
    Ended,
}

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Site>);

pub(crate) struct Site {
    pub(crate) cache: ObjectCache,
    pub(crate) prefix: Prefix,
    pub(crate) credentials: Arc<watch::Sender<Arc<Credentials>>>,
    pub(crate) origin_within: Duration,
    pub(crate) log_limit: LogLimit,
    tally: Tally,
}

impl std::ops::Deref for Shared {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.0
    }
}

impl Site {
    /// Returns the credentials that hold now.
    pub(crate) fn credentials(&self) -> Arc<Credentials> {
        self.credentials.borrow().clone()
    }
}

impl AsRef<Tally> for Shared {
    fn as_ref(&self) -> &Tally {
        &self.0.tally
    }
}

/// An HTTP cache in front of an origin, which runs. It stops when this is dropped.
pub struct Server {
    addresses: Vec<SocketAddr>,
    phase: Arc<watch::Sender<Phase>>,
    shared: Shared,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<watch::Sender<Phase>>);

impl Stopper {
    /// Asks the server to stop: no request begins any more, and what goes on may do so for as long
    /// as the options say.
    pub fn stop(&self) {
        self.0.send_if_modified(|phase| {
            let serves = *phase == Phase::Serving;
            if serves {
                // Logged before the server sees it: the process may end at once.
                info!(target: "nuthatch::chunks", "stopping");
            }
            *phase = (*phase).max(Phase::Draining);
            serves
        });
    }
}

/// What a server counts. It can be read for longer than the server runs.
#[derive(Clone)]
pub struct Figures {
    shared: Shared,
    phase: Arc<watch::Sender<Phase>>,
}

impl Figures {
    /// Whether the server was told to stop.
    pub fn is_stopping(&self) -> bool {
        *self.phase.borrow() != Phase::Serving
    }

    /// All of it, in Prometheus's text.
    pub fn exposition(&self) -> String {
        let mut text = self.shared.tally.exposition();
        let counts = self.shared.cache.counts();
        let causes = NotKept::ALL.map(|cause| (cause.code(), counts.not_kept_by(cause)));
        let help = "Blocks that were not kept in the cache, by their cause.";
        by_label(&mut text, "not_kept_total", help, "cause", &causes);
        let stat = self.shared.cache.chunks().map(|chunks| chunks.stat()).unwrap_or_default();
        for (name, help, value) in [
            ("from_cache_bytes_total", "Bytes read from the cache.", counts.from_cache),
            ("from_origin_bytes_total", "Bytes read from the origin.", counts.from_origin),
            (
                "from_others_bytes_total",
                "Bytes that were fetched for another request at the same time.",
                counts.from_others,
            ),
            ("fetched_bytes_total", "Bytes that the origin sent.", counts.fetched),
            ("origin_requests_total", "Requests for bytes to the origin.", counts.requests),
            ("origin_checks_total", "Questions what an object is.", counts.checks),
            ("origin_retries_total", "Requests to the origin made again.", counts.retries),
            (
                "claim_timeouts_total",
                "Fetches that waited in vain for another process.",
                counts.claim_timeouts,
            ),
            (
                "stale_total",
                "Objects opened in a version that the origin could not confirm.",
                counts.stale,
            ),
            (
                "cache_read_only",
                "1 if this process can only read the folder now, otherwise 0.",
                u64::from(stat.read_only),
            ),
            ("cache_bytes", "Bytes in use or reserved in the folder.", stat.used),
            ("cache_limit_bytes", "Bytes that the folder may have.", stat.limit),
            (
                "cache_chunks",
                "Approximate number of chunks in the folder, including those with metadata.",
                stat.parts,
            ),
            ("cache_evicted_total", "Segments evicted by any process.", stat.evicted),
            (
                "cache_displaced_total",
                "Chunks lost to others since the index could grow no further.",
                stat.displaced,
            ),
            ("cache_damaged_total", "Chunks that were found damaged.", stat.damaged),
        ] {
            one(&mut text, name, help, value);
        }
        text
    }
}

impl Server {
    /// Starts to serve objects below an address. Fails where it cannot listen, and with
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) where anybody could read what only this
    /// machine may.
    pub fn start(cache: ObjectCache, prefix: Prefix, options: &Options) -> io::Result<Self> {
        if let Some(problem) = options.problem() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let bound = options.addresses.iter().map(|address| bind(*address));
        let bound = bound.collect::<io::Result<Vec<_>>>()?;
        let (listeners, addresses): (Vec<_>, Vec<_>) = bound.into_iter().unzip();
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads)
            .thread_name("nuthatch-chunks")
            .enable_all()
            .build()?;
        let (phase, phases) = watch::channel(Phase::Serving);
        let phase = Arc::new(phase);
        let credentials = Arc::new(watch::channel(Credentials::new(options)).0);
        let origin_within = options.origin_within;
        let (log_limit, tally) = (LogLimit::default(), Tally::default());
        info!(target: "nuthatch::chunks", origin = %prefix, ?addresses, "started");
        let site = Site { cache, prefix, credentials, origin_within, log_limit, tally };
        let shared = Shared(Arc::new(site));
        let serving = Serving {
            shared: shared.clone(),
            head_bytes: options.head_bytes,
            idle: options.idle,
            room: Arc::new(Room::new(options.connections)),
            phase: phases,
        };
        let (drain, ender) = (options.drain, Arc::clone(&phase));
        let thread = thread::Builder::new().name("nuthatch-front".to_owned());
        let thread = thread.spawn(move || run(runtime, serving, listeners, drain, &ender))?;
        Ok(Self { addresses, phase, shared, thread: Some(thread) })
    }

    /// Where it listens, with the ports that were free.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What stops this server, from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.phase))
    }

    /// Returns a handle that replaces the credentials of this server, from any thread.
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::clone(&self.shared.credentials))
    }

    /// What it counts, for whoever tells it.
    pub fn figures(&self) -> Figures {
        Figures { shared: self.shared.clone(), phase: Arc::clone(&self.phase) }
    }

    /// Waits until the server has stopped.
    pub fn wait(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread died")));
        info!(target: "nuthatch::chunks", "stopped");
        ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopper().stop();
        // Whoever wants to know calls `wait`.
        let _ = self.join();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// The thread that serves.
#[expect(clippy::needless_pass_by_value, reason = "the thread has what it is given to itself")]
fn run(
    runtime: Runtime,
    serving: Serving,
    listeners: Vec<TcpListener>,
    drain: Duration,
    phase: &watch::Sender<Phase>,
) -> io::Result<()> {
    let served = runtime.block_on(async {
        let mut accepting = JoinSet::new();
        for listener in listeners {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            accepting.spawn(serving.clone().accept(listener));
        }
        let mut stopped = serving.phase.clone();
        let over = async {
            // The sender outlives this thread.
            let _ = stopped.wait_for(|phase| *phase > Phase::Serving).await;
            tokio::time::sleep(drain).await;
            phase.send_replace(Phase::Ended);
        };
        let ended = async { while accepting.join_next().await.is_some() {} };
        tokio::select! {
            () = ended => {}
            () = over => {}
        }
        Ok(())
    });
    runtime.shutdown_timeout(FAREWELL);
    served
}
