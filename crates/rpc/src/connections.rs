//! Connections that come in: a limited number.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// After a connection could not be accepted, as when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection, which counts until it is closed.
pub(crate) struct Connection {
    stream: TcpStream,
    _counts: OwnedSemaphorePermit,
}

/// Accepts connections while there are fewer than so many, at all of these places.
pub(crate) fn accept(
    listeners: Vec<TcpListener>,
    most: usize,
) -> mpsc::Receiver<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(1);
    let counts = Arc::new(Semaphore::new(most));
    for listener in listeners {
        tokio::spawn(accept_at(listener, sender.clone(), Arc::clone(&counts)));
    }
    receiver
}

async fn accept_at(
    listener: TcpListener,
    sender: mpsc::Sender<io::Result<Connection>>,
    counts: Arc<Semaphore>,
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
                if sender.send(Ok(Connection { stream, _counts: counts })).await.is_err() {
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

/// Listens, and tells the address with the port that was free.
pub(crate) fn listen(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let listener = std::net::TcpListener::bind(address).map_err(named)?;
    listener.set_nonblocking(true).map_err(named)?;
    let bound = listener.local_addr().map_err(named)?;
    Ok((listener, bound))
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
