//! Options of a server: addresses, credentials and limits.

use crate::server::tokens::Tokens;
use nuthatch_listen::tls::ServerTls;
use nuthatch_listen::{Protection, default_threads, exposure_problem};
use nuthatch_store::Durability;
use std::net::SocketAddr;
use std::time::Duration;

/// The maximum of time limits. Adding `Duration::MAX` to the current time would panic.
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
    /// The default of [`connections`](Self::connections).
    pub const CONNECTIONS: usize = 1024;
    /// The default of [`batch_bytes`](Self::batch_bytes): 256 KiB.
    pub const BATCH_BYTES: usize = 256 << 10;
    /// The default of [`message_bytes`](Self::message_bytes): 16 MiB.
    pub const MESSAGE_BYTES: usize = 16 << 20;
    /// The minimum of [`message_bytes`](Self::message_bytes): 4 KiB, enough for a key and a table
    /// name.
    pub const MIN_MESSAGE_BYTES: usize = 4 << 10;
    /// The maximum of [`message_bytes`](Self::message_bytes): 1 GiB.
    pub const MAX_MESSAGE_BYTES: usize = 1 << 30;
    /// The recommended minimum of [`memory`](Self::memory) in bytes: 1 MiB. Below it, calls of
    /// usual size are refused.
    pub const MIN_MEMORY: u64 = 1 << 20;

    /// Returns options for a server at these addresses, without TLS and tokens, with the defaults.
    /// Port 0 selects a free port.
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

    /// Requires TLS at all addresses, with this certificate.
    #[must_use]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Requires one of these tokens for each call, except health checks and reflection.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets whether the server may listen at addresses that other machines can reach without TLS,
    /// or without requiring a token or a client certificate; `false` by default.
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
    /// least 8. Threads start when they are needed and end when they are idle.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.clamp(1, 1024);
        self
    }

    /// Sets the maximum number of connections; 1024 by default. Further connections wait until one
    /// ends. While one waits, the server closes a connection that is [idle](Self::idle).
    #[must_use]
    pub fn connections(mut self, max: usize) -> Self {
        self.connections = max.clamp(1, 1 << 20);
        self
    }

    /// Sets the maximum number of concurrent calls of a connection; 128 by default. Further calls
    /// wait at the client.
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
    /// default. Calls that would exceed it fail with code `memory`.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the number of bytes of rows at which a message of a scan ends;
    /// [`BATCH_BYTES`](Self::BATCH_BYTES) by default. A request can set a lower number.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes.max(1);
        self
    }

    /// Sets the maximum number of unacknowledged batches of a stream; 1024 by default. The server
    /// reads no further batches meanwhile.
    #[must_use]
    pub fn batches_in_flight(mut self, max: usize) -> Self {
        self.batches_in_flight = max.clamp(1, 1 << 20);
        self
    }

    /// Sets what commits wait for before a write is acknowledged; [`Durability::Sync`] by default.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the time that a client has for the TLS handshake and the HTTP/2 preface; 10 seconds by
    /// default. Then the connection is closed.
    #[must_use]
    pub fn handshake(mut self, limit: Duration) -> Self {
        self.handshake = limit.min(MAX_LIMIT);
        self
    }

    /// Sets the interval of HTTP/2 pings to a client that sends nothing, and the time that the
    /// client has to respond to one; 20 seconds by default. A connection without a response is
    /// closed.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration) -> Self {
        self.keepalive = interval;
        self
    }

    /// Sets how long a client can be idle; 10 seconds by default, at least 1 millisecond.
    ///
    /// The server ends a transaction whose client neither receives nor sends for this time. It
    /// closes a connection without a call in progress for this time if the maximum number of
    /// connections is reached and another client waits.
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

    /// Returns the reason why the server would not start with these addresses: there is none, or
    /// other machines can reach one without TLS or without a token or client certificate.
    /// [`insecure`](Self::insecure) allows the latter. Returns `None` if there is no problem.
    pub fn problem(&self) -> Option<String> {
        let has_certificates = self.tls.as_ref().is_some_and(ServerTls::needs_client_certificate);
        let protection = Protection {
            has_tls: self.tls.is_some(),
            requires_login: self.tokens.is_some() || has_certificates,
        };
        exposure_problem(&self.addresses, protection, self.insecure)
    }
}
