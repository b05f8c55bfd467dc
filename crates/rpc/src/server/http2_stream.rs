//! The byte stream of a connection, with or without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The preface that each client sends first (RFC 9113, 3.4); a settings frame follows.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length of the preface and of the header of the settings frame.
const BEGINNING_LEN: usize = PREFACE.len() + 9;

/// The stream of a connection whose client has begun HTTP/2.
pub(crate) struct Stream {
    transport: Transport,
    /// The first bytes, which were read before HTTP/2 is served.
    beginning: [u8; BEGINNING_LEN],
    /// Number of these bytes.
    len: usize,
    /// Number of these bytes that have been read again.
    replayed: usize,
}

pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Waits until the client has begun HTTP/2: it has sent the preface, and as many bytes as the
    /// header of its settings has. Does not wait for more from a client of another protocol, whose
    /// bytes HTTP/2 refuses.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends before.
    pub(crate) async fn begin(mut transport: Transport) -> io::Result<Self> {
        let mut beginning = [0; BEGINNING_LEN];
        let mut len = 0;
        while len < BEGINNING_LEN {
            let read = match &mut transport {
                Transport::Plain(stream) => stream.read(&mut beginning[len..]).await?,
                Transport::Tls(stream) => stream.read(&mut beginning[len..]).await?,
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            len += read;
            let common = len.min(PREFACE.len());
            if beginning[..common] != PREFACE[..common] {
                break;
            }
        }
        Ok(Self { transport, beginning, len, replayed: 0 })
    }
}

/// Calls a method of the stream, with or without TLS.
macro_rules! of_stream {
    ($this:expr, $stream:ident => $call:expr) => {
        match &mut $this.transport {
            Transport::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Transport::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let missing = &this.beginning[this.replayed..this.len];
        if missing.is_empty() {
            return of_stream!(this, stream => stream.poll_read(context, buffer));
        }
        let len = missing.len().min(buffer.remaining());
        buffer.put_slice(&missing[..len]);
        this.replayed += len;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        of_stream!(self.get_mut(), stream => stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_stream!(self.get_mut(), stream => stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_stream!(self.get_mut(), stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_stream!(self.get_mut(), stream => stream.poll_shutdown(context))
    }
}
