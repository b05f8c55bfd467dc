//! Connections of clients: accepts a limited number and serves HTTP/2 on each.

use crate::server::http2_stream::{Stream, Transport};
use crate::server::middleware::CallMiddleware;
use crate::server::reload::LiveTls;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use nuthatch_listen::{Activity, ConnectionSlots, DrainSignal};
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tonic::body::Body;
use tonic::service::Routes;
use tower_service::Service as _;
use tracing::{debug, warn};

/// How long the server waits for a client to close after a failed TLS handshake.
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// What all connections of a server share.
#[derive(Clone)]
pub(crate) struct Connections {
    pub(crate) http: http2::Builder<TokioExecutor>,
    pub(crate) service: CallMiddleware<Routes>,
    pub(crate) tls: Option<Arc<LiveTls>>,
    pub(crate) slots: Arc<ConnectionSlots>,
    /// The time a client has for the TLS handshake and the HTTP/2 preface.
    pub(crate) handshake: Duration,
    /// A connection without a call for so long may be closed when no slot is free.
    pub(crate) idle: Duration,
    pub(crate) drain: DrainSignal,
}

impl Connections {
    /// Accepts connections until the server drains; then waits until they have ended.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let serve = |stream| {
            let shared = self.clone();
            async move {
                let ended = shared.connection(stream).await;
                debug!(target: "nuthatch::rpc", "a connection ended: {ended}");
            }
        };
        let refused = |error: &io::Error| {
            warn!(target: "nuthatch::rpc", %error, "a connection was not accepted");
        };
        let (slots, draining) = (Arc::clone(&self.slots), self.drain.draining());
        nuthatch_listen::accept(listener, slots, draining, serve, refused).await;
    }

    /// Serves a connection to its end, and returns why it ended.
    async fn connection(&self, stream: TcpStream) -> String {
        // If this fails, the connection fails too and reports it.
        let _ = stream.set_nodelay(true);
        let deadline = Instant::now() + self.handshake;
        let activity = Arc::new(Activity::default());
        let opened = tokio::select! {
            () = self.drain.draining() => return "the server stops".to_owned(),
            () = self.slots.must_yield(&activity, ConnectionSlots::GRACE) => {
                return "it had not begun HTTP/2, and another client waited".to_owned();
            }
            opened = timeout_at(deadline, self.open(stream)) => opened,
        };
        match opened {
            Ok(Ok((stream, closing))) => self.serve(stream, closing, &activity).await,
            Ok(Err(error)) => format!("before HTTP/2: {error}"),
            Err(_) => format!("no beginning of HTTP/2 within {:?}", self.handshake),
        }
    }

    /// Does the TLS handshake, if there is TLS, and waits until the client has begun HTTP/2.
    /// Returns the stream, and a receiver that becomes ready when the connection must close.
    async fn open(&self, stream: TcpStream) -> io::Result<(Stream, Option<oneshot::Receiver<()>>)> {
        let Some(tls) = &self.tls else {
            return Ok((Stream::begin(Transport::Plain(stream)).await?, None));
        };
        let accepted = TlsAcceptor::from(tls.config()).accept(stream).into_fallible().await;
        let stream = match accepted {
            Ok(stream) => stream,
            Err((error, stream)) => {
                discard_rest(stream).await;
                return Err(error);
            }
        };
        let closing = match stream.get_ref().1.peer_certificates() {
            Some(certificates) => {
                let refused = || io::Error::other("the client's certificate is not accepted");
                Some(tls.admit(certificates).ok_or_else(refused)?)
            }
            None => None,
        };
        Ok((Stream::begin(Transport::Tls(Box::new(stream))).await?, closing))
    }

    async fn serve(
        &self,
        stream: Stream,
        closing: Option<oneshot::Receiver<()>>,
        activity: &Arc<Activity>,
    ) -> String {
        let service = Calls(self.service.for_connection(activity));
        let mut http = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let mut closed = pin!(closed(closing));
        let refused = || "the client's certificate is not accepted".to_owned();
        tokio::select! {
            served = http.as_mut() => return outcome(served),
            () = closed.as_mut() => return refused(),
            () = self.slots.must_yield(activity, self.idle) => {}
            () = self.drain.draining() => {}
        }
        // Sends GOAWAY: calls in progress go on, and clients make new ones over another connection.
        http.as_mut().graceful_shutdown();
        tokio::select! {
            served = http => outcome(served),
            () = closed => refused(),
            () = activity.idle_for(ConnectionSlots::GRACE) => "it was idle".to_owned(),
        }
    }
}

/// Reads and discards what a client sent after a failed TLS handshake, until the client closes.
///
/// A socket that is closed with unread data resets the connection. The client then loses the alert
/// that says why the handshake failed, and reports a lost connection instead.
async fn discard_rest(mut stream: TcpStream) {
    const MAX_DISCARDED_BYTES: u64 = 64 << 10;
    let discarded = async {
        stream.shutdown().await?;
        let mut rest = stream.take(MAX_DISCARDED_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // The connection has failed already: a further failure changes nothing.
    let _ = timeout(DISCARD_TIME, discarded).await;
}

/// Waits until the connection must close.
async fn closed(closing: Option<oneshot::Receiver<()>>) {
    // If the sender was dropped, the server has ended, which closes all connections.
    let must_close = match closing {
        Some(closing) => closing.await.is_ok(),
        None => false,
    };
    if !must_close {
        std::future::pending::<()>().await;
    }
}

fn outcome(served: hyper::Result<()>) -> String {
    served.map_or_else(|error| error.to_string(), |()| "it was closed".to_owned())
}

/// The calls of one connection, as hyper makes them.
struct Calls(CallMiddleware<Routes>);

impl hyper::service::Service<Request<Incoming>> for Calls {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <CallMiddleware<Routes> as tower_service::Service<Request<Body>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // Routes are always ready.
        self.0.clone().call(request.map(Body::new))
    }
}
