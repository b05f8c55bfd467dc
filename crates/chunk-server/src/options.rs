//! Options of a server: addresses, credentials and limits.

use nuthatch_listen::{Protection, default_threads, exposure_problem};
use nuthatch_origins::Access;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Returns whether a client with this token may read.
pub type TokenCheck = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Returns whether a client with these certificates may connect: its own, and those of issuers that
/// it has sent.
pub type CertificateCheck = Arc<dyn Fn(&[CertificateDer<'static>]) -> bool + Send + Sync>;

/// Options of a [`Server`](crate::Server).
#[derive(Clone)]
pub struct Options {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) certificate_expiry: Vec<Option<u64>>,
    pub(crate) certificates: Option<CertificateCheck>,
    pub(crate) token_check: Option<TokenCheck>,
    pub(crate) access: Access,
    pub(crate) insecure: bool,
    pub(crate) threads: usize,
    pub(crate) connections: usize,
    pub(crate) max_head_len: usize,
    pub(crate) idle: Duration,
    pub(crate) origin_timeout: Duration,
    pub(crate) drain: Duration,
}

impl Options {
    /// Returns options for a server at these addresses, without TLS and tokens. Port 0 selects a
    /// free port.
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            tls: None,
            certificate_expiry: Vec::new(),
            certificates: None,
            token_check: None,
            access: Access::new(),
            insecure: false,
            threads: default_threads(),
            connections: 256,
            max_head_len: 16 << 10,
            idle: Duration::from_mins(1),
            origin_timeout: Duration::from_mins(1),
            drain: Duration::from_secs(10),
        }
    }

    /// Uses TLS at all addresses.
    #[must_use]
    pub fn tls(mut self, tls: Arc<ServerConfig>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets when the certificates of the server expire, in seconds since 1970, for its metrics.
    /// `None` is a certificate whose time is not known.
    #[must_use]
    pub fn certificate_expiry(mut self, times: Vec<Option<u64>>) -> Self {
        self.certificate_expiry = times;
        self
    }

    /// Sets the check of certificates of clients, which `tls` must require. It is repeated for open
    /// connections when the credentials are replaced.
    #[must_use]
    pub fn client_certificates(mut self, check: CertificateCheck) -> Self {
        self.certificates = Some(check);
        self
    }

    /// Requires a token, sent as `Authorization: Bearer`, that this check accepts.
    #[must_use]
    pub fn token_check(mut self, check: TokenCheck) -> Self {
        self.token_check = Some(check);
        self
    }

    /// Sets the credentials of requests to the origin.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
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

    /// Sets the maximum number of connections; 256 by default. More wait. Then a connection that
    /// has had no request in progress for half a second is closed for one that waits.
    #[must_use]
    pub fn connections(mut self, max: usize) -> Self {
        self.connections = max.clamp(1, 1 << 20);
        self
    }

    /// Sets the maximum length of the head of a request in bytes; 16 KiB by default, at least 8
    /// KiB.
    #[must_use]
    pub fn max_head_len(mut self, max: usize) -> Self {
        self.max_head_len = max.clamp(8 << 10, 1 << 20);
        self
    }

    /// Sets the time in which a client must send the head of its next request, and must receive
    /// some bytes of a response; a minute by default.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// Sets the time in which the origin must send the first bytes of an object, including retries;
    /// a minute by default.
    #[must_use]
    pub fn origin_timeout(mut self, limit: Duration) -> Self {
        self.origin_timeout = limit;
        self
    }

    /// Sets the time that responses in progress have to finish after [`Stopper::stop`]; 10 seconds
    /// by default.
    ///
    /// [`Stopper::stop`]: crate::Stopper::stop
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Returns why the server must not start with these addresses: there is none, or other machines
    /// can reach one without TLS or a login. [`insecure`](Self::insecure) allows the second.
    pub fn problem(&self) -> Option<String> {
        let protection = Protection {
            has_tls: self.tls.is_some(),
            requires_login: self.token_check.is_some() || self.certificates.is_some(),
        };
        exposure_problem(&self.addresses, protection, self.insecure)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}
