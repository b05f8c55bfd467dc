//! Connections of clients: accepts a limited number and serves HTTP on each.

use crate::answer::{Shown, answer};
use crate::body::Content;
use crate::figures::Open;
use crate::patient::Patient;
use crate::server::Shared;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nuthatch_chunks::file_limit_advice;
use nuthatch_listen::{Activity, ConnectionSlots, DrainSignal, OpenCall};
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tracing::{debug, warn};

/// The time that a client has for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The maximum number of headers of a request.
const MAX_HEADERS: usize = 100;

/// What is the same for all connections.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) shared: Shared,
    pub(crate) head_bytes: usize,
    pub(crate) idle: Duration,
    pub(crate) slots: Arc<ConnectionSlots>,
    pub(crate) drain: DrainSignal,
}

impl Serving {
    /// Accepts connections until the server is told to stop; then waits for those there are.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let serve = |stream| self.clone().connection(stream);
        let refused = |error: &io::Error| self.refused(error);
        let (slots, draining) = (Arc::clone(&self.slots), self.drain.draining());
        nuthatch_listen::accept(listener, slots, draining, serve, refused).await;
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
        let tls = self.shared.credentials().tls.clone();
        let served = match tls {
            None => self.serve(stream, Shown::default()).await,
            Some(tls) => match self.handshake(tls.accept(stream)).await {
                Ok(stream) => {
                    let certificates = stream.get_ref().1.peer_certificates();
                    let shown = Shown::new(certificates.map(<[_]>::to_vec));
                    self.serve(stream, shown).await
                }
                Err(error) => Err(error),
            },
        };
        if let Err(error) = served {
            debug!(target: "nuthatch::chunks", %error, "a connection ended");
        }
    }

    /// Waits for a TLS handshake, for a limited time, and for less if another client waits.
    async fn handshake<T>(&self, accepted: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let no_call = Activity::default();
        tokio::select! {
            accepted = timeout(HANDSHAKE, accepted) => accepted?,
            () = self.slots.must_yield(&no_call, ConnectionSlots::GRACE) => Err(another_waits()),
        }
    }

    async fn serve<S>(&self, stream: S, shown: Shown) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let activity = Arc::new(Activity::default());
        let service = service_fn(|request| self.respond(request, &shown, activity.begin_call()));
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle)
            .max_buf_size(self.head_bytes)
            .max_headers(MAX_HEADERS)
            // A client that has sent its last request may close its side of the connection.
            .half_close(true);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut removed = pin!(self.credentials_removed(&shown));
        tokio::select! {
            served = connection.as_mut() => return served.map_err(io::Error::other),
            error = removed.as_mut() => return Err(error),
            () = self.slots.must_yield(&activity, ConnectionSlots::GRACE) => {
                return Err(another_waits());
            }
            () = self.drain.draining() => {}
        }
        // The request that is under way is answered, and no other one read.
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            served = connection => served.map_err(io::Error::other),
            error = removed => Err(error),
            () = self.drain.ended() => Ok(()),
        }
    }

    /// Waits until the client's certificate, or the token of its last request, is not accepted any
    /// more.
    async fn credentials_removed(&self, shown: &Shown) -> io::Error {
        let mut credentials = self.shared.credentials.subscribe();
        loop {
            let now = credentials.borrow_and_update().clone();
            let removed = if !now.accepts(shown.certificates()) {
                "its certificate is not accepted"
            } else if shown.token().is_some_and(|token| !now.admits(Some(&token))) {
                "its token was removed"
            } else {
                // The server has the sender.
                match credentials.changed().await {
                    Ok(()) => continue,
                    Err(_) => return std::future::pending().await,
                }
            };
            return io::Error::new(io::ErrorKind::PermissionDenied, removed);
        }
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        shown: &Shown,
        call: OpenCall,
    ) -> Result<Response<Content>, Infallible> {
        let answer = answer(&self.shared, request, shown).await;
        Ok(answer.map(|content| content.of_call(call)))
    }
}

/// Returns why a connection ended that was idle.
fn another_waits() -> io::Error {
    io::Error::other("it was idle, and another client waited")
}
