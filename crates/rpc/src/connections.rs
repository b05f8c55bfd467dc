//! Connections that come in: a limited number.

use crate::reload::LiveTls;
use crate::tls::HANDSHAKE;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// After a connection could not be accepted, as when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection, which counts until it is closed.
pub(crate) struct Connection {
    stream: Stream,
    /// Completes when the connection must close.
    closing: Option<oneshot::Receiver<()>>,
    _counts: OwnedSemaphorePermit,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Connections that may begin, for the server.
type Accepted = mpsc::Sender<io::Result<Connection>>;

/// Accepts connections while there are fewer than so many, at all of these places.
pub(crate) fn accept(
    listeners: Vec<TcpListener>,
    most: usize,
    tls: Option<&Arc<LiveTls>>,
) -> mpsc::Receiver<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(1);
    let counts = Arc::new(Semaphore::new(most));
    for listener in listeners {
        tokio::spawn(accept_at(listener, sender.clone(), Arc::clone(&counts), tls.cloned()));
    }
    receiver
}

async fn accept_at(
    listener: TcpListener,
    sender: Accepted,
    counts: Arc<Semaphore>,
    tls: Option<Arc<LiveTls>>,
) {
    loop {
        let accepted = async {
            // Nobody closes the semaphore.
            let counts = Arc::clone(&counts).acquire_owned().await.ok()?;
            Some((listener.accept().await, counts))
        };
        let accepted = tokio::select! {
            // The server stops: the port is free again.
            () = sender.closed() => return,
            accepted = accepted => accepted,
        };
        match accepted {
            None => return,
            Some((Ok((stream, _)), counts)) => {
                // Where this fails the connection does, too, and says so itself.
                let _ = stream.set_nodelay(true);
                if let Some(tls) = &tls {
                    // On its own: a client that is slow keeps no other one waiting.
                    tokio::spawn(shake_hands(stream, Arc::clone(tls), sender.clone(), counts));
                    continue;
                }
                let stream = Stream::Plain(stream);
                let connection = Connection { stream, closing: None, _counts: counts };
                if sender.send(Ok(connection)).await.is_err() {
                    return;
                }
            }
            Some((Err(error), counts)) => {
                tracing::warn!(target: "nuthatch::rpc", %error, "a connection was not accepted");
                drop(counts);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Begins TLS on a connection, and hands it to the server if that succeeds.
async fn shake_hands(
    stream: TcpStream,
    tls: Arc<LiveTls>,
    sender: Accepted,
    counts: OwnedSemaphorePermit,
) {
    let handshake = TlsAcceptor::from(tls.config()).accept(stream);
    let shaken = tokio::select! {
        () = sender.closed() => return,
        shaken = timeout(HANDSHAKE, handshake) => shaken,
    };
    let stream = match shaken {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(target: "nuthatch::rpc", %error, "TLS was not agreed on");
            return;
        }
        Err(_) => return,
    };
    let closing = match stream.get_ref().1.peer_certificates() {
        Some(certificates) => match tls.admit(certificates) {
            Some(closing) => Some(closing),
            None => return,
        },
        None => None,
    };
    let stream = Stream::Tls(Box::new(stream));
    // A server that stops takes no more.
    let _ = sender.send(Ok(Connection { stream, closing, _counts: counts })).await;
}

/// Listens, and tells the address with the port that was free.
pub(crate) fn listen(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let listener = std::net::TcpListener::bind(address).map_err(named)?;
    listener.set_nonblocking(true).map_err(named)?;
    let bound = listener.local_addr().map_err(named)?;
    Ok((listener, bound))
}

impl Connection {
    fn tcp(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Returns whether the connection must close. Wakes the reading task when that changes.
    fn must_close(&mut self, context: &mut Context<'_>) -> bool {
        let Some(closing) = &mut self.closing else { return false };
        let Poll::Ready(closed) = Pin::new(closing).poll(context) else { return false };
        self.closing = None;
        // Without a word the server has ended, which closes everything itself.
        closed.is_ok()
    }
}

/// Calls a method of the stream, whichever it is.
macro_rules! of_stream {
    ($this:expr, $stream:ident => $call:expr) => {
        match &mut $this.get_mut().stream {
            Stream::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Stream::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.tcp().connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.must_close(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        of_stream!(self, stream => stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        of_stream!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_stream!(self, stream => stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_stream!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_stream!(self, stream => stream.poll_shutdown(context))
    }
}
