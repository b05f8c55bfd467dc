//! Connections that come in: a limited number, each until its client or the server has enough.

use super::answer::{Shown, answer};
use super::body::Content;
use super::figures::Open;
use super::patient::Patient;
use super::server::{Phase, Shared};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nuthatch_chunks::file_limit_advice;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::{debug, warn};

/// After a connection could not be accepted, as when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);
/// A connection that has not shaken hands by then is closed.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Headers that a request may have.
const HEADERS_MOST: usize = 100;

/// What is the same for all connections.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) shared: Shared,
    pub(super) head_bytes: usize,
    pub(super) idle: Duration,
    pub(super) counts: Arc<Semaphore>,
    pub(super) phase: watch::Receiver<Phase>,
}

impl Serving {
    /// Accepts connections until the server is told to stop; then waits for those there are.
    pub(super) async fn accept(self, listener: TcpListener) {
        let mut tasks = JoinSet::new();
        let mut phase = self.phase.clone();
        let mut stopped = pin!(phase.wait_for(|phase| *phase > Phase::Serving));
        loop {
            let accepted = async {
                // Nobody closes the semaphore.
                let count = Arc::clone(&self.counts).acquire_owned().await.ok()?;
                Some((listener.accept().await, count))
            };
            let accepted = tokio::select! {
                _ = &mut stopped => break,
                accepted = accepted => accepted,
            };
            match accepted {
                None => break,
                Some((Ok((stream, _)), count)) => {
                    let serving = self.clone();
                    tasks.spawn(async move {
                        serving.connection(stream).await;
                        drop(count);
                    });
                }
                Some((Err(error), _)) => {
                    self.refused(&error);
                    tokio::time::sleep(PAUSE).await;
                }
            }
            while tasks.try_join_next().is_some() {}
        }
        // The port is free again.
        drop(listener);
        while tasks.join_next().await.is_some() {}
    }

    /// Logs why a connection was not accepted, unless that was logged too often just now.
    fn refused(&self, error: &io::Error) {
        if let Some(unlogged) = self.shared.log_limit.admit("accept", Instant::now()) {
            let advice = file_limit_advice(error).unwrap_or_default();
            let reason = format_args!("{error}{advice}");
            warn!(target: "nuthatch::chunks", %reason, unlogged, "a connection was not accepted");
        }
    }

    async fn connection(self, stream: TcpStream) {
        let _open = Open::connection(self.shared.clone());
        // Where this fails the connection does, too, and says so itself.
        let _ = stream.set_nodelay(true);
        let stream = Patient::new(stream, self.idle);
        let served = match &self.shared.credentials().tls {
            None => self.serve(stream).await,
            Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.serve(stream).await,
                Ok(Err(error)) => Err(error),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            },
        };
        if let Err(error) = served {
            debug!(target: "nuthatch::chunks", %error, "a connection ended");
        }
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send) -> io::Result<()> {
        let shown = Shown::default();
        let service = service_fn(|request| self.respond(request, &shown));
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle)
            .max_buf_size(self.head_bytes)
            .max_headers(HEADERS_MOST)
            // A client that has sent its last request may close its side of the connection.
            .half_close(true);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut phase = self.phase.clone();
        let mut removed = pin!(self.token_removed(&shown));
        tokio::select! {
            served = connection.as_mut() => return served.map_err(io::Error::other),
            error = removed.as_mut() => return Err(error),
            _ = phase.wait_for(|phase| *phase > Phase::Serving) => {}
        }
        // The request that is under way is answered, and no other one read.
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            served = connection => served.map_err(io::Error::other),
            error = removed => Err(error),
            _ = phase.wait_for(|phase| *phase > Phase::Draining) => Ok(()),
        }
    }

    /// Ends when the token that the connection showed last is not admitted any more.
    async fn token_removed(&self, shown: &Shown) -> io::Error {
        let mut credentials = self.shared.credentials.subscribe();
        loop {
            // The server has the sender.
            if credentials.changed().await.is_err() {
                return std::future::pending().await;
            }
            let now = credentials.borrow_and_update().clone();
            if shown.token().is_some_and(|token| !now.admits(Some(&token))) {
                return io::Error::new(io::ErrorKind::PermissionDenied, "its token was removed");
            }
        }
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        shown: &Shown,
    ) -> Result<Response<Content>, Infallible> {
        Ok(answer(&self.shared, request, shown).await)
    }
}

/// Listens without waiting; an error names the address.
pub(super) fn listen(address: std::net::SocketAddr) -> io::Result<std::net::TcpListener> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let listener = std::net::TcpListener::bind(address).map_err(named)?;
    listener.set_nonblocking(true).map_err(named)?;
    Ok(listener)
}
