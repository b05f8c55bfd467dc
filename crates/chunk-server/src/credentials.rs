//! The credentials of a server, which can be replaced while it runs.

use crate::options::{CertificateCheck, Options, TokenCheck};
use nuthatch_listen::check_switch;
use nuthatch_origins::Access;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tracing::info;

/// The credentials of a server and those that it requires from clients.
pub(crate) struct Credentials {
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) certificate_expiry: Vec<Option<u64>>,
    pub(crate) token_check: Option<TokenCheck>,
    pub(crate) certificates: Option<CertificateCheck>,
    /// Credentials for requests to the origin.
    pub(crate) access: Access,
}

impl Credentials {
    pub(crate) fn new(options: &Options) -> Arc<Self> {
        let Options { tls, token_check, certificates, access, .. } = options.clone();
        let tls = tls.map(TlsAcceptor::from);
        let certificate_expiry = options.certificate_expiry.clone();
        Arc::new(Self { tls, certificate_expiry, token_check, certificates, access })
    }

    /// Returns whether a client with these certificates may connect; `None` is a client without.
    pub(crate) fn accepts(&self, certificates: Option<&[CertificateDer<'static>]>) -> bool {
        self.certificates.as_ref().is_none_or(|check| certificates.is_some_and(|all| check(all)))
    }

    /// Returns whether a request with this token is allowed.
    pub(crate) fn admits(&self, token: Option<&[u8]>) -> bool {
        self.token_check.as_ref().is_none_or(|check| token.is_some_and(|token| check(token)))
    }
}

/// Replaces the credentials of a server: its certificate, its tokens, and the credentials for the
/// origin.
#[derive(Clone)]
pub struct Reloader(pub(crate) Arc<watch::Sender<Arc<Credentials>>>);

impl Reloader {
    /// Replaces the credentials by those in these options; ignores all other options. Connections
    /// stay open, except those whose last request had a token that is no longer valid, or whose
    /// client certificate is no longer accepted: they are closed at once. TLS connections keep the
    /// server's certificate that they began with.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidInput`](io::ErrorKind::InvalidInput) if TLS, certificates of clients or
    /// tokens would be switched on or off. The server then keeps its credentials.
    pub fn replace(&self, options: &Options) -> io::Result<()> {
        let new = Credentials::new(options);
        let before = self.0.borrow().clone();
        check_switch("TLS", before.tls.is_some(), new.tls.is_some())?;
        let (was_on, is_on) = (before.certificates.is_some(), new.certificates.is_some());
        check_switch("certificates of clients", was_on, is_on)?;
        check_switch("tokens", before.token_check.is_some(), new.token_check.is_some())?;
        self.0.send_replace(new);
        info!(target: "nuthatch::chunks", "credentials reloaded");
        Ok(())
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}
