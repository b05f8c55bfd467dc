//! A server that sends a constant reply. A cache server's additional cost is the cost of the cache.

use crate::address::Address;
use crate::error::Error;
use crate::ring::{Handler, Ring};
use nuthatch_uring::BUFFER_LEN;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The constant reply of an echo server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A RESP bulk string of this many bytes.
    Value(usize),
    /// The RESP reply `+OK`.
    Ok,
}

impl FromStr for Reply {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "ok" {
            return Ok(Self::Ok);
        }
        text.parse().map(Self::Value).map_err(|_| "expected ok, or bytes of a value".into())
    }
}

impl Reply {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Ok => b"+OK\r\n".to_vec(),
            Self::Value(size) => format!("${size}\r\n{}\r\n", "e".repeat(size)).into_bytes(),
        }
    }
}

/// A listening echo server.
#[derive(Debug)]
pub struct Echo {
    listener: OwnedFd,
    address: Address,
    request_bytes: usize,
    reply: Reply,
}

/// Interval at which the loop checks the stop flag.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl Echo {
    /// Listens on an address for requests of `request_bytes` each, which must be at least 1.
    pub fn bind(address: &Address, request_bytes: usize, reply: Reply) -> Result<Self, Error> {
        if request_bytes == 0 {
            return Err(Error::Usage("a request has one byte at least".into()));
        }
        let (listener, address) = address.listen().map_err(|error| {
            Error::Io(io::Error::new(error.kind(), format!("{address}: {error}")))
        })?;
        Ok(Self { listener, address, request_bytes, reply })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Replies to requests until `stop` is set.
    pub fn serve(self, stop: &AtomicBool) -> Result<(), Error> {
        let reply = self.reply.bytes();
        // The maximum number of requests that end in one buffer. The first of them may have begun
        // in an earlier buffer.
        let max_replies = BUFFER_LEN / self.request_bytes + 1;
        let mut ring = Ring::new(Arc::new(reply.repeat(max_replies)), CONNECTIONS)?;
        ring.listen(self.listener)?;
        let (request_bytes, reply_bytes) = (self.request_bytes, reply.len());
        let mut replier = Replier { request_bytes, reply_bytes, unfinished: Vec::new() };
        while !stop.load(Ordering::Relaxed) {
            ring.wait(STOP_CHECK_INTERVAL)?;
            ring.dispatch(&mut replier)?;
        }
        Ok(())
    }
}

/// Number of connections for which the ring is sized. More connections are accepted.
const CONNECTIONS: usize = 256;

/// Counts the requests in received bytes, and replies to each.
struct Replier {
    request_bytes: usize,
    reply_bytes: usize,
    /// Bytes received of an incomplete request, for each connection.
    unfinished: Vec<usize>,
}

impl Handler for Replier {
    type Error = io::Error;

    fn received(&mut self, connection: usize, bytes: &[u8]) -> io::Result<Option<Range<usize>>> {
        let partial_bytes = &mut self.unfinished[connection];
        let requests = (*partial_bytes + bytes.len()) / self.request_bytes;
        *partial_bytes = (*partial_bytes + bytes.len()) % self.request_bytes;
        Ok((requests > 0).then_some(0..requests * self.reply_bytes))
    }

    fn opened(&mut self, connection: usize) {
        if self.unfinished.len() <= connection {
            self.unfinished.resize(connection + 1, 0);
        }
        self.unfinished[connection] = 0;
    }

    fn closed(&mut self, _: usize, _: Option<io::Error>) -> io::Result<()> {
        Ok(()) // the loop serves the other connections
    }
}
