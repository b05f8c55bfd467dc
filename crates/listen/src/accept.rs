//! Binds addresses and accepts connections.

use crate::inherited;
use crate::slots::ConnectionSlots;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The pause after a connection could not be accepted, for example because the process has no free
/// file descriptor.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);

/// The maximum number of connections that a listener accepts while no slot is free. The server must
/// accept the connection of a waiting client to notice that client, and to close an idle connection
/// for it.
pub(crate) const MAX_WAITING: usize = 8;

/// Binds all addresses. Returns nonblocking listeners, and the addresses with the ports that the
/// system selected for port 0.
///
/// # Errors
///
/// Fails if an address cannot be bound. The error names the address.
pub fn bind_all(
    addresses: &[SocketAddr],
) -> io::Result<(Vec<std::net::TcpListener>, Vec<SocketAddr>)> {
    let bound = addresses.iter().map(|address| {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
        bind(*address).map_err(named)
    });
    Ok(bound.collect::<io::Result<Vec<_>>>()?.into_iter().unzip())
}

/// Binds one address, or uses the socket of the parent process if it has passed one.
pub(crate) fn bind(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let listener = match inherited::tcp(address)? {
        Some(listener) => listener,
        None => std::net::TcpListener::bind(address)?,
    };
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// Runs the future that `accept` returns as a task, for each listener.
///
/// # Errors
///
/// Fails if the runtime cannot register a listener.
///
/// # Panics
///
/// If it is called outside of a tokio runtime.
pub fn spawn_acceptors<F>(
    listeners: Vec<std::net::TcpListener>,
    accept: impl Fn(TcpListener) -> F,
) -> io::Result<JoinSet<()>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut acceptors = JoinSet::new();
    for listener in listeners {
        acceptors.spawn(accept(TcpListener::from_std(listener)?));
    }
    Ok(acceptors)
}

/// Accepts connections until `draining` is ready, and returns when all connections have ended.
///
/// Each connection has a task of its own, which waits for one of `slots` and then runs the future
/// that `serve` returns. When `draining` is ready, the listener and `slots` are closed: connections
/// that still wait for a slot are closed without being served.
///
/// Calls `log_error` with the reason when a connection could not be accepted.
pub async fn accept<S, F>(
    listener: TcpListener,
    slots: Arc<ConnectionSlots>,
    draining: impl Future<Output = ()>,
    serve: S,
    log_error: impl Fn(&io::Error),
) where
    S: Fn(TcpStream) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let (tasks, shared) = (&mut connections, Arc::clone(&slots));
    let begin = move |stream, wait| {
        let (slots, served) = (Arc::clone(&shared), serve(stream));
        tasks.spawn(async move {
            let slot = slots.acquire().await;
            drop(wait);
            if slot.is_some() {
                served.await;
            }
        });
        while tasks.try_join_next().is_some() {}
    };
    let next = |context: &mut Context<'_>| listener.poll_accept(context).map_ok(without_address);
    let waiting = Arc::new(Semaphore::new(MAX_WAITING));
    accept_each(next, waiting, draining, begin, log_error).await;
    // Frees the port.
    drop(listener);
    slots.close();
    while connections.join_next().await.is_some() {}
}

/// Accepts connections until `draining` is ready, and passes them to `begin`. Before it accepts a
/// connection, it waits for a permit, which `begin` gets, too: a connection without one waits in
/// the kernel.
///
/// Calls `log_error` with the reason when a connection could not be accepted.
pub(crate) async fn accept_each<S>(
    next: impl Fn(&mut Context<'_>) -> Poll<io::Result<S>>,
    permits: Arc<Semaphore>,
    draining: impl Future<Output = ()>,
    mut begin: impl FnMut(S, OwnedSemaphorePermit),
    log_error: impl Fn(&io::Error),
) {
    let mut draining = pin!(draining);
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let permit = Arc::clone(&permits).acquire_owned().await.map_err(io::Error::other)?;
            poll_fn(&next).await.map(|stream| (stream, permit))
        };
        let accepted: io::Result<_> = tokio::select! {
            () = &mut draining => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, permit)) => begin(stream, permit),
            Err(error) => {
                log_error(&error);
                // File descriptors may be exhausted: without a pause this loop would spin.
                sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
}

/// Returns an accepted connection without the address of its client.
pub(crate) fn without_address<S, A>((stream, _): (S, A)) -> S {
    stream
}
