//! How a store is served.

use crate::access::Tokens;
use nuthatch_listen::tls::ServerTls;
use nuthatch_listen::{Protection, default_threads, exposure_problem};
use nuthatch_store::Durability;
use std::net::SocketAddr;
use std::time::Duration;

/// The greatest limit of time. Adding `Duration::MAX` to the time of now panics.
const MAX_LIMIT: Duration = Duration::from_hours(24 * 365 * 100);

/// Options of a [`Server`](crate::Server).
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) insecure: bool,
    pub(crate) threads: usize,
    pub(crate) readers: usize,
    pub(crate) connections: usize,
    pub(crate) streams: u32,
    pub(crate) message_bytes: usize,
    pub(crate) memory: u64,
    pub(crate) batch_bytes: usize,
    pub(crate) batches_in_flight: usize,
    pub(crate) durability: Durability,
    pub(crate) handshake: Duration,
    pub(crate) keepalive: Duration,
    pub(crate) idle: Duration,
    pub(crate) longest: Duration,
    pub(crate) drain: Duration,
}

impl Options {
    /// The default limit of connections.
    pub const CONNECTIONS: usize = 1024;
    /// The bytes of rows in a message of a scan, about, unless told otherwise.
    pub const BATCH_BYTES: usize = 256 << 10;
    /// The longest message, in bytes, unless told otherwise.
    pub const MESSAGE_BYTES: usize = 16 << 20;
    /// The least that a longest message may be: room for a key, a name and what is around them.
    pub const LEAST_MESSAGE_BYTES: usize = 4 << 10;
    /// The greatest limit of a message, in bytes.
    pub const MAX_MESSAGE_BYTES: usize = 1 << 30;
    /// The least memory for requests and answers with which clients can work, in bytes.
    pub const MIN_MEMORY: u64 = 1 << 20;

    /// A server at these addresses, without TLS and tokens. Port 0 is any free port.
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            addresses,
            tls: None,
            tokens: None,
            insecure: false,
            threads: default_threads(),
            readers: (cores * 4).clamp(8, 128),
            connections: Self::CONNECTIONS,
            streams: 128,
            message_bytes: Self::MESSAGE_BYTES,
            memory: 256 << 20,
            batch_bytes: Self::BATCH_BYTES,
            batches_in_flight: 1024,
            durability: Durability::Sync,
            handshake: Duration::from_secs(10),
            keepalive: Duration::from_secs(20),
            idle: Duration::from_secs(10),
            longest: Duration::from_mins(10),
            drain: Duration::from_secs(10),
        }
    }

    /// Speaks TLS at all addresses.
    #[must_use]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Answers only those who show one of these tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Serves at addresses that others than this machine can reach though anybody could read and
    /// write there, or tokens could be read on their way.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Threads that move bytes; one for each core by default, up to 8.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, 1024);
        self
    }

    /// Threads that read the store, at most; four for each core by default, at least 8. They start
    /// when they are needed and go when they are not.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.clamp(1, 1024);
        self
    }

    /// Sets the maximum number of connections; 1024 by default. More wait until one ends. A
    /// connection that is [idle](Self::idle) makes room for one that waits.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most.clamp(1, 1 << 20);
        self
    }

    /// How many calls a connection can have at a time; 128 by default. More wait at the client.
    #[must_use]
    pub fn streams(mut self, most: u32) -> Self {
        self.streams = most.max(1);
        self
    }

    /// Sets the maximum length of a message, in bytes; 16 MiB by default, at least 4 KiB, at most
    /// 1 GiB. It also limits the values that can be read and written. A message is never longer
    /// than the [memory](Self::memory).
    #[must_use]
    pub fn message_bytes(mut self, most: usize) -> Self {
        self.message_bytes = most.clamp(Self::LEAST_MESSAGE_BYTES, Self::MAX_MESSAGE_BYTES);
        self
    }

    /// The memory, in bytes, that requests and answers of all clients may take; 256 MiB by
    /// default. What would take more is refused.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// After how many bytes of rows a message of a scan ends, unless the client wants less.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes.max(1);
        self
    }

    /// How many batches of a stream can wait for their acknowledgement; 1024 by default.
    #[must_use]
    pub fn batches_in_flight(mut self, most: usize) -> Self {
        self.batches_in_flight = most.clamp(1, 1 << 20);
        self
    }

    /// What commits wait for, and so what an answer to a write says.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the time that a client has for the TLS handshake and the beginning of HTTP/2; 10
    /// seconds by default. A connection that takes longer is closed.
    #[must_use]
    pub fn handshake(mut self, limit: Duration) -> Self {
        self.handshake = limit.min(MAX_LIMIT);
        self
    }

    /// Sets the interval of HTTP/2 pings to a client that sends nothing, and the time it has to
    /// answer one; 20 seconds by default. A connection without an answer is closed.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration) -> Self {
        self.keepalive = interval;
        self
    }

    /// Sets how long a client can be idle; 10 seconds by default, at least 1 millisecond.
    ///
    /// A transaction ends when its client neither reads nor sends for so long. A connection without
    /// a call in progress for so long is closed if the maximum number of connections is reached.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit.clamp(Duration::from_millis(1), MAX_LIMIT);
        self
    }

    /// How long a transaction stays open at most; 10 minutes by default. Backups are not ended by
    /// this.
    #[must_use]
    pub fn longest(mut self, limit: Duration) -> Self {
        self.longest = limit.min(MAX_LIMIT);
        self
    }

    /// How long calls may go on after the server was told to stop; 10 seconds by default.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Returns the maximum length of a message in bytes.
    pub(crate) fn max_message_len(&self) -> usize {
        self.message_bytes.min(usize::try_from(self.memory).unwrap_or(usize::MAX))
    }

    /// What is wrong with where it listens, if something is: an address where anybody could do
    /// anything, or none at all. [`insecure`](Self::insecure) allows the first.
    pub fn problem(&self) -> Option<String> {
        let has_certificates = self.tls.as_ref().is_some_and(ServerTls::needs_client_certificate);
        let protection = Protection {
            has_tls: self.tls.is_some(),
            requires_login: self.tokens.is_some() || has_certificates,
        };
        exposure_problem(&self.addresses, protection, self.insecure)
    }
}
