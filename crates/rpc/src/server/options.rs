//! Options of a server: addresses, credentials and limits.

use crate::server::tokens::Tokens;
use nuthatch_listen::tls::ServerTls;
use nuthatch_listen::{Protection, default_threads, exposure_problem};
use nuthatch_store::Durability;
use std::net::SocketAddr;
use std::time::Duration;

/// The maximum of limits of time. Adding `Duration::MAX` to the current time panics.
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
    pub(crate) max_transaction: Duration,
    pub(crate) drain: Duration,
}

impl Options {
    /// The default limit of connections.
    pub const CONNECTIONS: usize = 1024;
    /// The default of [`batch_bytes`](Self::batch_bytes).
    pub const BATCH_BYTES: usize = 256 << 10;
    /// The default of [`message_bytes`](Self::message_bytes).
    pub const MESSAGE_BYTES: usize = 16 << 20;
    /// The minimum of [`message_bytes`](Self::message_bytes): room for a key and a name.
    pub const MIN_MESSAGE_BYTES: usize = 4 << 10;
    /// The maximum of [`message_bytes`](Self::message_bytes).
    pub const MAX_MESSAGE_BYTES: usize = 1 << 30;
    /// The minimum of [`memory`](Self::memory) with which clients can work, in bytes.
    pub const MIN_MEMORY: u64 = 1 << 20;

    /// Returns options for a server at these addresses, without TLS and tokens. Port 0 selects a
    /// free port.
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
            max_transaction: Duration::from_mins(10),
            drain: Duration::from_secs(10),
        }
    }

    /// Uses TLS at all addresses.
    #[must_use]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Requires one of these tokens for each call.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Allows addresses that other machines can reach although the server has no TLS or requires no
    /// token or certificate.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Sets the number of I/O threads; one for each core by default, up to 8.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, 1024);
        self
    }

    /// Sets the maximum number of threads that read the store; four for each core by default, at
    /// least 8. They start when they are needed, and end when they are idle.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.clamp(1, 1024);
        self
    }

    /// Sets the maximum number of connections; 1024 by default. More wait until one ends. A
    /// connection that is [idle](Self::idle) makes room for one that waits.
    #[must_use]
    pub fn connections(mut self, max: usize) -> Self {
        self.connections = max.clamp(1, 1 << 20);
        self
    }

    /// Sets the maximum number of concurrent calls of a connection; 128 by default. More wait at
    /// the client.
    #[must_use]
    pub fn streams(mut self, max: u32) -> Self {
        self.streams = max.max(1);
        self
    }

    /// Sets the maximum length of a message, in bytes; 16 MiB by default, at least 4 KiB, at most
    /// 1 GiB. It also limits the values that can be read and written. A message is never longer
    /// than the [memory](Self::memory).
    #[must_use]
    pub fn message_bytes(mut self, max: usize) -> Self {
        self.message_bytes = max.clamp(Self::MIN_MESSAGE_BYTES, Self::MAX_MESSAGE_BYTES);
        self
    }

    /// Sets the maximum memory of requests and responses of all clients, in bytes; 256 MiB by
    /// default. Messages that would exceed it are refused.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the number of bytes of rows after which a message of a scan ends, unless the client
    /// requests fewer.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes.max(1);
        self
    }

    /// Sets the maximum number of batches of a stream without an acknowledgement; 1024 by default.
    #[must_use]
    pub fn batches_in_flight(mut self, max: usize) -> Self {
        self.batches_in_flight = max.clamp(1, 1 << 20);
        self
    }

    /// Sets what commits wait for before a write is acknowledged.
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

    /// Sets the maximum duration of a transaction; 10 minutes by default. Backups have no limit.
    #[must_use]
    pub fn max_transaction(mut self, limit: Duration) -> Self {
        self.max_transaction = limit.min(MAX_LIMIT);
        self
    }

    /// Sets the time that calls in progress have to finish after [`Stopper::stop`]; 10 seconds by
    /// default.
    ///
    /// [`Stopper::stop`]: crate::Stopper::stop
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Returns the maximum length of a message in bytes.
    pub(crate) fn max_message_len(&self) -> usize {
        self.message_bytes.min(usize::try_from(self.memory).unwrap_or(usize::MAX))
    }

    /// Returns what is wrong with the addresses: there is none, or other machines can reach one
    /// without TLS or a login. [`insecure`](Self::insecure) allows the second.
    pub fn problem(&self) -> Option<String> {
        let has_certificates = self.tls.as_ref().is_some_and(ServerTls::needs_client_certificate);
        let protection = Protection {
            has_tls: self.tls.is_some(),
            requires_login: self.tokens.is_some() || has_certificates,
        };
        exposure_problem(&self.addresses, protection, self.insecure)
    }
}
