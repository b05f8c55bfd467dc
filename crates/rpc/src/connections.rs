//! Connections of clients: accepts a limited number and serves HTTP/2 on each.

use crate::activity::Activity;
use crate::drain::Drain;
use crate::gate::Gated;
use crate::reload::LiveTls;
use crate::stream::{Stream, Transport};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_rustls::TlsAcceptor;
use tonic::body::Body;
use tonic::service::Routes;
use tower_service::Service as _;
use tracing::{debug, warn};

/// After a connection could not be accepted, as when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// What all connections of a server share.
#[derive(Clone)]
pub(crate) struct Connections {
    pub(crate) http: http2::Builder<TokioExecutor>,
    pub(crate) service: Gated<Routes>,
    pub(crate) tls: Option<Arc<LiveTls>>,
    /// One permit for each connection that can still be served.
    pub(crate) free: Arc<Semaphore>,
    /// Notifies the connection that has been idle for longest when no permit is left.
    pub(crate) full: Arc<Notify>,
    /// The time a client has for the TLS handshake and the HTTP/2 preface.
    pub(crate) handshake: Duration,
    /// A connection without a call for so long is closed when no permit is left.
    pub(crate) idle: Duration,
    pub(crate) drain: Drain,
}

impl Connections {
    /// Accepts connections until the server stops; then waits for their ends.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        let mut stopping = pin!(self.drain.clone().begun());
        loop {
            // Accepted before there is a permit: only then is it known that a client waits, and an
            // idle connection must make room. So each listener accepts one beyond the maximum.
            let accepted = async {
                let (stream, _) = listener.accept().await?;
                Ok((stream, self.permit().await))
            };
            let accepted: io::Result<_> = tokio::select! {
                () = &mut stopping => break,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, permit)) => {
                    let shared = self.clone();
                    connections.spawn(async move {
                        let ended = shared.connection(stream).await;
                        debug!(target: "nuthatch::rpc", "a connection ended: {ended}");
                        drop(permit);
                    });
                }
                Err(error) => {
                    warn!(target: "nuthatch::rpc", %error, "a connection was not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
        // The port is free again.
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    /// Waits until another connection can be served. If there is no permit, the connection that has
    /// been idle for longest, or is the next to be, makes room. The result is always `Some`, since
    /// the semaphore is never closed.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(permit);
        }
        self.full.notify_one();
        // The semaphore is never closed.
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Serves a connection to its end, and returns why it ended.
    async fn connection(&self, stream: TcpStream) -> String {
        // If this fails the connection does, too, and says so itself.
        let _ = stream.set_nodelay(true);
        let deadline = Instant::now() + self.handshake;
        let opened = tokio::select! {
            () = self.drain.clone().begun() => return "the server stops".to_owned(),
            opened = timeout_at(deadline, self.open(stream)) => opened,
        };
        match opened {
            Ok(Ok((transport, closing))) => self.serve(transport, closing, deadline).await,
            Ok(Err(error)) => format!("TLS handshake: {error}"),
            Err(_) => format!("no TLS handshake within {:?}", self.handshake),
        }
    }

    /// Does the TLS handshake, if there is TLS. Returns with the stream what becomes ready when the
    /// connection must close.
    async fn open(
        &self,
        stream: TcpStream,
    ) -> io::Result<(Transport, Option<oneshot::Receiver<()>>)> {
        let Some(tls) = &self.tls else { return Ok((Transport::Plain(stream), None)) };
        let stream = TlsAcceptor::from(tls.config()).accept(stream).await?;
        let closing = match stream.get_ref().1.peer_certificates() {
            Some(certificates) => {
                let refused = || io::Error::other("the client's certificate is not accepted");
                Some(tls.admit(certificates).ok_or_else(refused)?)
            }
            None => None,
        };
        Ok((Transport::Tls(Box::new(stream)), closing))
    }

    async fn serve(
        &self,
        transport: Transport,
        closing: Option<oneshot::Receiver<()>>,
        deadline: Instant,
    ) -> String {
        let activity = Arc::new(Activity::default());
        let stream = TokioIo::new(Stream::new(transport, Arc::clone(&activity)));
        let service = Calls(self.service.for_connection(&activity));
        let mut http = pin!(self.http.serve_connection(stream, service));
        let must_end = async {
            tokio::select! {
                () = has_not_begun_at(&activity, deadline) => {
                    format!("no HTTP/2 preface within {:?}", self.handshake)
                }
                () = closed(closing) => "the client's certificate is not accepted".to_owned(),
            }
        };
        let mut must_end = pin!(must_end);
        tokio::select! {
            served = http.as_mut() => return outcome(served),
            reason = must_end.as_mut() => return reason,
            () = self.must_make_room(&activity) => {}
            () = self.drain.clone().begun() => {
                if !activity.has_begun() {
                    return "the server stops".to_owned();
                }
            }
        }
        // Sends GOAWAY: calls in progress go on, and clients make new ones over another connection.
        http.as_mut().graceful_shutdown();
        tokio::select! {
            served = http => outcome(served),
            reason = must_end => reason,
            () = activity.idle_for(self.idle) => "it was idle".to_owned(),
        }
    }

    /// Waits until this connection must close because it is idle and no permit is left.
    async fn must_make_room(&self, activity: &Activity) {
        loop {
            activity.idle_for(self.idle).await;
            let before = activity.idle_after();
            self.full.notified().await;
            if before.is_some() && before == activity.idle_after() {
                return;
            }
            // This connection is in use again: another one makes room.
            self.full.notify_one();
        }
    }
}

/// Waits until this time, and for ever if the client has begun HTTP/2 by then.
async fn has_not_begun_at(activity: &Activity, deadline: Instant) {
    sleep_until(deadline).await;
    if activity.has_begun() {
        std::future::pending::<()>().await;
    }
}

/// Waits until the connection must close.
async fn closed(closing: Option<oneshot::Receiver<()>>) {
    // If the sender was dropped the server has ended, which closes everything itself.
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
struct Calls(Gated<Routes>);

impl hyper::service::Service<Request<Incoming>> for Calls {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <Gated<Routes> as tower_service::Service<Request<Body>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // Routes are always ready.
        self.0.clone().call(request.map(Body::new))
    }
}

/// Listens, and returns the address with the port that was free.
pub(crate) fn listen(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let listener = std::net::TcpListener::bind(address).map_err(named)?;
    listener.set_nonblocking(true).map_err(named)?;
    let bound = listener.local_addr().map_err(named)?;
    Ok((listener, bound))
}
