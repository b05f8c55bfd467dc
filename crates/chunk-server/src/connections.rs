//! Connections of clients: accepts a limited number and serves HTTP on each.

use crate::metrics::InFlight;
use crate::response::body::ResponseBody;
use crate::response::{ClientCredentials, respond};
use crate::site::Shared;
use crate::write_timeout::WriteTimeout;
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
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of headers of a request.
const MAX_HEADERS: usize = 100;

/// What all connections share.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) shared: Shared,
    pub(crate) max_head_len: usize,
    pub(crate) idle: Duration,
    pub(crate) slots: Arc<ConnectionSlots>,
    pub(crate) drain: DrainSignal,
}

impl Serving {
    /// Accepts connections until the server drains; then waits until all of them have ended.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let serve = |stream| self.clone().connection(stream);
        let log_error = |error: &io::Error| self.log_error(error);
        let (slots, draining) = (Arc::clone(&self.slots), self.drain.draining());
        nuthatch_listen::accept(listener, slots, draining, serve, log_error).await;
    }

    /// Logs why a connection was not accepted, unless too many such lines were logged recently.
    fn log_error(&self, error: &io::Error) {
        if let Some(unlogged) = self.shared.log_limit.admit("accept", Instant::now()) {
            let advice = file_limit_advice(error).unwrap_or_default();
            let reason = format_args!("{error}{advice}");
            warn!(target: "nuthatch::chunks", %reason, unlogged, "a connection was not accepted");
        }
    }

    async fn connection(self, stream: TcpStream) {
        let _open = InFlight::connection(self.shared.clone());
        // If this fails, the connection fails too and reports it.
        let _ = stream.set_nodelay(true);
        let stream = WriteTimeout::new(stream, self.idle);
        let tls = self.shared.credentials().tls.clone();
        let served = match tls {
            None => self.serve(stream, ClientCredentials::default()).await,
            Some(tls) => match self.handshake(tls.accept(stream)).await {
                Ok(stream) => {
                    let certificates = stream.get_ref().1.peer_certificates();
                    let client = ClientCredentials::new(certificates.map(<[_]>::to_vec));
                    self.serve(stream, client).await
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
            accepted = timeout(HANDSHAKE_TIMEOUT, accepted) => accepted?,
            () = self.slots.must_yield(&no_call, ConnectionSlots::GRACE) => Err(another_waits()),
        }
    }

    async fn serve<S>(&self, stream: S, client: ClientCredentials) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let activity = Arc::new(Activity::default());
        let service = service_fn(|request| self.respond(request, &client, activity.begin_call()));
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle)
            .max_buf_size(self.max_head_len)
            .max_headers(MAX_HEADERS)
            // A client that has sent its last request may close its side of the connection.
            .half_close(true);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut removed = pin!(self.credentials_removed(&client));
        tokio::select! {
            served = connection.as_mut() => return served.map_err(io::Error::other),
            error = removed.as_mut() => return Err(error),
            () = self.slots.must_yield(&activity, ConnectionSlots::GRACE) => {
                return Err(another_waits());
            }
            () = self.drain.draining() => {}
        }
        // Responds to the request in progress and reads no further one.
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            served = connection => served.map_err(io::Error::other),
            error = removed => Err(error),
            () = self.drain.ended() => Ok(()),
        }
    }

    /// Waits until the client's certificate, or the token of its last request, is not accepted any
    /// more.
    async fn credentials_removed(&self, client: &ClientCredentials) -> io::Error {
        let mut credentials = self.shared.credentials.subscribe();
        loop {
            let now = credentials.borrow_and_update().clone();
            let removed = if !now.accepts(client.certificates()) {
                "its certificate is not accepted"
            } else if client.token().is_some_and(|token| !now.admits(Some(&token))) {
                "its token was removed"
            } else {
                // The server owns the sender.
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
        client: &ClientCredentials,
        call: OpenCall,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let response = respond(&self.shared, request, client).await;
        Ok(response.map(|body| body.during_call(call)))
    }
}

/// Returns the error of an idle connection that ended for another client.
fn another_waits() -> io::Error {
    io::Error::other("it was idle, and another client waited")
}
