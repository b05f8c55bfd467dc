//! The admin endpoint: an HTTP server with metrics and health, on its own thread.
//!
//! It only reads, and does not run on event loops, so a request here delays no client of the cache.
//! `Limits` bounds what its clients can make it hold.

mod answer;
mod client;
mod families;
mod process;
#[cfg(test)]
mod tests;

pub use client::Client;
pub use nuthatch_listen::MetricsFormat;

use crate::log;
use crate::net::address::{Address, SocketFiles};
use crate::net::socket_file;
use crate::state::Server;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// What the admin endpoint reports. It is called on the thread of the endpoint.
pub trait MetricsSource: Send + Sync + 'static {
    /// Returns the metrics in this format.
    fn metrics(&self, format: MetricsFormat) -> String;

    /// Returns whether the server is stopping, and so is unhealthy.
    fn is_stopping(&self) -> bool;
}

impl MetricsSource for Server {
    fn metrics(&self, format: MetricsFormat) -> String {
        families::text(self, format)
    }

    fn is_stopping(&self) -> bool {
        self.is_ending()
    }
}

/// Maximum bytes of the head of a request, and maximum number of its header fields.
const MAX_HEAD_LEN: usize = 16 << 10;
const MAX_FIELDS: usize = 64;

/// Pause after a failure to accept a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Bounds on what clients of the admin endpoint can make it hold.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Maximum connections. Further ones wait to be accepted.
    connections: usize,
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
            head: Duration::from_secs(10),
            lifetime: Duration::from_mins(1),
            leave: Duration::from_secs(10),
        }
    }
}

/// The error for an admin address that cannot be bound.
#[derive(Debug)]
pub struct BindError {
    address: Address,
    error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the admin port {}: {}", self.address, self.error)
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

enum Listener {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// Listening sockets and their bound addresses.
#[derive(Default)]
pub(crate) struct Listeners {
    all: Vec<Listener>,
    pub(crate) addresses: Vec<Address>,
    files: SocketFiles,
}

impl Listeners {
    /// Binds all addresses. Unlike a port of the cache, none is shared with another process, since
    /// clients would reach either of the two.
    pub(crate) fn bind(addresses: &[Address]) -> io::Result<Self> {
        let mut listeners = Self::default();
        for address in addresses {
            let (listener, bound) = listen(address).map_err(|error| {
                let kind = error.kind();
                io::Error::new(kind, BindError { address: address.clone(), error })
            })?;
            listeners.files.note(&bound);
            listeners.all.push(listener);
            listeners.addresses.push(bound);
        }
        Ok(listeners)
    }
}

fn listen(address: &Address) -> io::Result<(Listener, Address)> {
    match address {
        Address::Tcp(address) => {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let bound = Address::Tcp(listener.local_addr()?);
            Ok((Listener::Tcp(listener), bound))
        }
        Address::Unix(path) => {
            let listener = std::os::unix::net::UnixListener::from(socket_file::listen(path)?);
            listener.set_nonblocking(true)?;
            Ok((Listener::Unix(listener), address.clone()))
        }
    }
}

/// The thread of the admin endpoint. Dropping it ends the thread.
#[derive(Debug)]
pub struct Admin {
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
    /// Removed last.
    _files: SocketFiles,
}

impl Admin {
    /// Serves metrics on these addresses. Returns the bound addresses, with the ports that were
    /// chosen for port 0.
    ///
    /// # Errors
    ///
    /// The error of the system if an address cannot be bound, or the thread not started.
    pub fn open(
        addresses: &[Address],
        source: &Arc<dyn MetricsSource>,
    ) -> io::Result<(Self, Vec<Address>)> {
        let listeners = Listeners::bind(addresses)?;
        let bound = listeners.addresses.clone();
        Ok((Self::start(listeners, source)?, bound))
    }

    /// Serves metrics on these listeners.
    pub(crate) fn start(listeners: Listeners, source: &Arc<dyn MetricsSource>) -> io::Result<Self> {
        Self::start_within(Limits::default(), listeners, source)
    }

    fn start_within(
        limits: Limits,
        listeners: Listeners,
        source: &Arc<dyn MetricsSource>,
    ) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let places = Arc::new(Semaphore::new(limits.connections));
        let guard = runtime.enter();
        for listener in listeners.all {
            let (places, source) = (Arc::clone(&places), Arc::clone(source));
            match listener {
                Listener::Tcp(listener) => {
                    let listener = TcpListener::from_std(listener)?;
                    let next = move |cx: &mut Context<'_>| listener.poll_accept(cx).map_ok(first);
                    runtime.spawn(accept(next, places, source, limits));
                }
                Listener::Unix(listener) => {
                    let listener = UnixListener::from_std(listener)?;
                    let next = move |cx: &mut Context<'_>| listener.poll_accept(cx).map_ok(first);
                    runtime.spawn(accept(next, places, source, limits));
                }
            }
        }
        drop(guard);
        let thread = thread::Builder::new().name("nuthatch-admin".to_owned()).spawn(move || {
            // Returns when the sender is dropped. Dropping the runtime ends all tasks.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread), _files: listeners.files })
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

fn first<S, A>((stream, _): (S, A)) -> S {
    stream
}

/// Accepts connections until the runtime ends.
async fn accept<S>(
    next: impl Fn(&mut Context<'_>) -> Poll<io::Result<S>>,
    places: Arc<Semaphore>,
    source: Arc<dyn MetricsSource>,
    limits: Limits,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match poll_fn(&next).await {
            Ok(stream) => {
                let source = Arc::clone(&source);
                tokio::spawn(async move {
                    serve(stream, &*source, limits).await;
                    drop(place);
                });
            }
            Err(error) => {
                log::admin_accept_failed(&error);
                // File descriptors may be exhausted: without a pause this loop would spin.
                sleep(PAUSE).await;
            }
        }
    }
}

/// Serves the requests of one connection.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    source: &dyn MetricsSource,
    limits: Limits,
) {
    let answer = service_fn(async |request| {
        Ok::<_, Infallible>(answer::answer::<hyper::body::Incoming>(&request, source))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD_LEN)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    // The result is ignored: the client has disconnected or has its response.
    if timeout(limits.lifetime, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(limits.leave, connection).await;
    }
}
