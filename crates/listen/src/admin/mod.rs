//! The admin endpoint: an HTTP server with a live page, metrics and health, on its own thread, and
//! its client.
//!
//! It only reads, from a [`MetricsSource`]. It refuses requests of pages of other sites, and hides
//! private values from requests without a token: see [`Access`]. Its limits bound what its clients
//! can make it hold: connections, the bytes and the time of the head of a request, and the time of
//! a connection.

mod access;
mod client;
mod descriptors;
mod listeners;
mod live;
mod origin;
mod page_files;
mod refusals;
mod respond;
#[cfg(test)]
mod tests;

pub use access::{Access, AccessRules};
pub use client::{Client, Reply};
pub use listeners::{BindError, Listeners};

use crate::accept::{MAX_WAITING, accept_each, without_address};
use crate::activity::Activity;
use crate::address::{Address, SocketFiles};
use crate::drain::{DrainSignal, Lifecycle};
use crate::metrics_source::MetricsSource;
use crate::rate_limit::RateLimit;
use crate::slots::ConnectionSlots;
use crate::thread::{LogLines, ServerThread};
use descriptors::Descriptors;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use listeners::Listener;
use live::LiveCache;
use refusals::TARGET;
use respond::Site;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::{Level, enabled, warn};

/// Maximum bytes of the head of a request, and maximum number of its header fields.
const MAX_HEAD_LEN: usize = 16 << 10;
const MAX_FIELDS: usize = 64;

/// The server that the endpoint belongs to logs its start and its end.
const NO_LOG: LogLines = LogLines { stopping: || {}, stopped: || {} };

/// Bounds on what clients of the admin endpoint can make it hold.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Maximum connections of a listener. For a further one, the connection that has been idle for
    /// longest is closed. Each listener has its own limit, so that clients of the network cannot
    /// keep a probe from the socket file.
    connections: usize,
    /// Time without a request after which a connection is idle. Short, since it delays each further
    /// connection; clients send their request right after they have connected.
    idle: Duration,
    /// Maximum time until the head of a request is complete, including the wait for its first byte.
    head: Duration,
    /// Time after which a connection accepts no more requests.
    lifetime: Duration,
    /// Time after `lifetime` in which the client must read its last response.
    leave: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 32,
            idle: Duration::from_millis(50),
            head: Duration::from_secs(10),
            lifetime: Duration::from_mins(1),
            leave: Duration::from_secs(10),
        }
    }
}

/// A running admin endpoint. Dropping it ends its thread.
#[derive(Debug)]
pub struct Admin {
    thread: ServerThread<Address>,
    /// Removed last.
    _files: SocketFiles,
}

impl Admin {
    /// Serves the live page, the metrics and the health of `source` on these listeners.
    ///
    /// # Errors
    ///
    /// Fails with the error of the system if the thread cannot be started.
    pub fn start(
        listeners: Listeners,
        source: Arc<dyn MetricsSource>,
        access: Access,
    ) -> io::Result<Self> {
        Self::start_within(Limits::default(), listeners, source, access)
    }

    fn start_within(
        limits: Limits,
        listeners: Listeners,
        source: Arc<dyn MetricsSource>,
        access: Access,
    ) -> io::Result<Self> {
        let Listeners { all, addresses, files } = listeners;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let lifecycle = Lifecycle::new();
        let live = Arc::new(LiveCache::default());
        let drain = lifecycle.signal();
        let descriptors = Arc::new(Descriptors::new(limits.idle));
        let endpoint = Endpoint { source, access, live, limits, descriptors, drain };
        let guard = runtime.enter();
        for listener in all {
            let endpoint = endpoint.clone();
            match listener {
                Listener::Tcp(listener) => {
                    let listener = TcpListener::from_std(listener)?;
                    runtime.spawn(endpoint.accept(true, move |context| {
                        listener.poll_accept(context).map_ok(without_address)
                    }));
                }
                Listener::Unix(listener) => {
                    let listener = UnixListener::from_std(listener)?;
                    runtime.spawn(endpoint.accept(false, move |context| {
                        listener.poll_accept(context).map_ok(without_address)
                    }));
                }
            }
        }
        drop(guard);
        let drain = lifecycle.signal();
        // When it ends, the runtime ends with all connections.
        let serve = async move {
            drain.draining().await;
            Ok(())
        };
        let control = (lifecycle, NO_LOG);
        let thread = ServerThread::start("nuthatch-admin", runtime, addresses, control, serve)?;
        Ok(Self { thread, _files: files })
    }

    /// Returns the bound addresses, with the ports that the system selected for port 0.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        self.thread.addresses()
    }
}

/// What all listeners share.
#[derive(Clone)]
struct Endpoint {
    source: Arc<dyn MetricsSource>,
    access: Access,
    live: Arc<LiveCache>,
    limits: Limits,
    descriptors: Arc<Descriptors>,
    drain: DrainSignal,
}

impl Endpoint {
    /// Accepts connections until the endpoint ends.
    async fn accept<S>(
        self,
        is_network: bool,
        next: impl Fn(&mut Context<'_>) -> Poll<io::Result<S>>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let slots = Arc::new(ConnectionSlots::new(self.limits.connections));
        let begin = |stream, wait| {
            let (endpoint, slots) = (self.clone(), slots.clone());
            tokio::spawn(async move {
                let Some(_slot) = slots.acquire().await else { return };
                drop(wait);
                let Self { source, access, live, .. } = &endpoint;
                let site = Site { source: &**source, access, live, is_network };
                serve(stream, &site, &endpoint, &slots).await;
            });
        };
        let failed = |error: &io::Error| {
            log_accept_failed(error);
            self.descriptors.note_accept_failed(error);
        };
        let waiting = Arc::new(Semaphore::new(MAX_WAITING));
        accept_each(next, waiting, self.drain.draining(), begin, failed).await;
    }
}

/// Serves the requests of one connection, until another client needs its slot or its descriptor.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    site: &Site<'_>,
    Endpoint { limits, descriptors, .. }: &Endpoint,
    slots: &ConnectionSlots,
) {
    let activity = Arc::new(Activity::default());
    let respond = service_fn(async |request| {
        let _call = activity.begin_call();
        Ok::<_, Infallible>(respond::respond::<hyper::body::Incoming>(&request, site))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD_LEN)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(stream), respond);
    let served = async {
        let mut connection = pin!(connection);
        // The result is ignored: the client has disconnected or has its response.
        if timeout(limits.lifetime, connection.as_mut()).await.is_err() {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(limits.leave, connection).await;
        }
    };
    tokio::select! {
        () = served => {}
        () = slots.must_yield(&activity, limits.idle) => {}
        () = descriptors.must_yield(&activity) => {}
    }
}

/// Logs why a connection was not accepted, unless too many such lines were logged recently.
fn log_accept_failed(error: &io::Error) {
    static RATE_LIMIT: RateLimit = RateLimit::new();
    if enabled!(target: TARGET, Level::WARN)
        && let Some(unlogged) = RATE_LIMIT.admit(Instant::now())
    {
        warn!(
            target: TARGET,
            unlogged, %error, "a connection to the admin endpoint could not be accepted"
        );
    }
}
