//! The bytes of a connection, with or without TLS.

use crate::activity::Activity;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The length of the HTTP/2 client preface and of the header of the settings frame behind it.
const PREFACE_LEN: usize = 24 + 9;

/// A connection's stream, which notes when the client has begun HTTP/2.
pub(crate) struct Stream {
    transport: Transport,
    activity: Arc<Activity>,
    /// Bytes of the preface that have not arrived.
    preface_missing: usize,
}

pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(crate) fn new(transport: Transport, activity: Arc<Activity>) -> Self {
        Self { transport, activity, preface_missing: PREFACE_LEN }
    }

    /// Notes that bytes arrived.
    fn received(&mut self, len: usize) {
        if self.preface_missing > 0 {
            self.preface_missing = self.preface_missing.saturating_sub(len);
            if self.preface_missing == 0 {
                self.activity.begin();
            }
        }
    }
}

/// Calls a method of the stream, whichever it is.
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
        let before = buffer.filled().len();
        let read = ready!(of_stream!(this, stream => stream.poll_read(context, buffer)));
        this.received(buffer.filled().len() - before);
        Poll::Ready(read)
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
