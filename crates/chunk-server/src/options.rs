//! How a server listens, and its limits.

use nuthatch_listen::{Protection, default_threads, exposure_problem};
use nuthatch_origins::Access;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Tells whether somebody who shows this token may read.
pub type Guard = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Returns whether a client with these certificates may connect: its own, and those of issuers that
/// it has sent.
pub type CertificateCheck = Arc<dyn Fn(&[CertificateDer<'static>]) -> bool + Send + Sync>;

/// Options of a [`Server`](crate::Server).
#[derive(Clone)]
pub struct Options {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) certificates: Option<CertificateCheck>,
    pub(crate) guard: Option<Guard>,
    pub(crate) access: Access,
    pub(crate) insecure: bool,
    pub(crate) threads: usize,
    pub(crate) connections: usize,
    pub(crate) head_bytes: usize,
    pub(crate) idle: Duration,
    pub(crate) origin_within: Duration,
    pub(crate) drain: Duration,
}

impl Options {
    /// A server at these addresses, without TLS and tokens. Port 0 is any free port.
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            tls: None,
            certificates: None,
            guard: None,
            access: Access::new(),
            insecure: false,
            threads: default_threads(),
            connections: 256,
            head_bytes: 16 << 10,
            idle: Duration::from_mins(1),
            origin_within: Duration::from_mins(1),
            drain: Duration::from_secs(10),
        }
    }

    /// Uses TLS at all addresses.
    #[must_use]
    pub fn tls(mut self, tls: Arc<ServerConfig>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the check of certificates of clients, which `tls` must require. It is repeated for open
    /// connections when the credentials are replaced.
    #[must_use]
    pub fn client_certificates(mut self, check: CertificateCheck) -> Self {
        self.certificates = Some(check);
        self
    }

    /// Answers only those who show a token, as `Authorization: Bearer`, that this lets in.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// What requests to the origin show.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Serves at addresses that others than this machine can reach though anybody could read there,
    /// or tokens could be read on their way.
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

    /// Sets the maximum number of connections; 256 by default. More wait. Then a connection that
    /// has had no request in progress for half a second is closed for one that waits.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most.clamp(1, 1 << 20);
        self
    }

    /// How long the head of a request may be, in bytes; 16 KiB by default, 8 KiB at least.
    #[must_use]
    pub fn head_bytes(mut self, most: usize) -> Self {
        self.head_bytes = most.clamp(8 << 10, 1 << 20);
        self
    }

    /// How long a client may take to send the head of its next request, and how long it may take
    /// nothing of an answer; a minute by default.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// How long it may take until the origin has sent the first bytes of an object, with all that
    /// is tried again; a minute by default.
    #[must_use]
    pub fn origin_within(mut self, limit: Duration) -> Self {
        self.origin_within = limit;
        self
    }

    /// How long answers may go on after the server was told to stop; 10 seconds by default.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// What is wrong with where it listens, if something is: an address where anybody could read,
    /// or none at all. [`insecure`](Self::insecure) allows the first.
    pub fn problem(&self) -> Option<String> {
        let protection = Protection {
            has_tls: self.tls.is_some(),
            requires_login: self.guard.is_some() || self.certificates.is_some(),
        };
        exposure_problem(&self.addresses, protection, self.insecure)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}
