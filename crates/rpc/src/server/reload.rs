//! Certificates and tokens that change while a server runs.

use crate::server::tokens::Tokens;
use nuthatch_listen::tls::ServerTls;
use nuthatch_listen::{ReloadError, check_switch};
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};
use tracing::info;

/// Replaces the certificate and the tokens of a running server. Clones refer to the same server.
#[derive(Clone)]
pub struct Reloader {
    pub(crate) tokens: watch::Sender<Option<Tokens>>,
    pub(crate) tls: Option<Arc<LiveTls>>,
}

/// The effects of a successful reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// Number of connections that were closed because their client certificate is no longer
    /// accepted.
    pub closed_connections: usize,
}

impl Reloader {
    /// Checks that [`reload`](Self::reload) would accept this certificate and these tokens.
    ///
    /// # Errors
    ///
    /// Fails if TLS, client certificates or tokens would be switched on or off.
    pub fn check(
        &self,
        tls: Option<&ServerTls>,
        tokens: Option<&Tokens>,
    ) -> Result<(), ReloadError> {
        check_switch("TLS", self.tls.is_some(), tls.is_some())?;
        check_switch("tokens", self.tokens.borrow().is_some(), tokens.is_some())?;
        match (&self.tls, tls) {
            (Some(live), Some(tls)) => live.check(tls),
            _ => Ok(()),
        }
    }

    /// Replaces the certificate and the tokens.
    ///
    /// Connections stay open, except those of clients whose certificate is no longer accepted.
    /// Streams and transactions end with code `unauthenticated` if their token was removed, and
    /// with `forbidden` if it allows less than before. All other calls continue.
    ///
    /// # Errors
    ///
    /// Fails, without a change, if TLS, client certificates or tokens would be switched on or off.
    pub fn reload(
        &self,
        tls: Option<ServerTls>,
        tokens: Option<Tokens>,
    ) -> Result<Reloaded, ReloadError> {
        self.check(tls.as_ref(), tokens.as_ref())?;
        let closed_connections = match (&self.tls, tls) {
            (Some(live), Some(tls)) => live.replace(tls),
            _ => 0,
        };
        let replaced = match (&self.tls, &tokens) {
            (Some(_), Some(_)) => "certificate and tokens reloaded",
            (Some(_), None) => "certificate reloaded",
            (None, Some(_)) => "tokens reloaded",
            (None, None) => "nothing to reload: the server has no certificate and no tokens",
        };
        self.tokens.send_replace(tokens);
        info!(target: "nuthatch::rpc", closed_connections, "{replaced}");
        Ok(Reloaded { closed_connections })
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

/// The TLS of a running server, and its connections with a certificate of the client.
pub(crate) struct LiveTls(Mutex<State>);

struct State {
    tls: ServerTls,
    config: Arc<ServerConfig>,
    clients: Vec<Client>,
}

struct Client {
    certificates: Vec<CertificateDer<'static>>,
    /// Closes the connection.
    close: oneshot::Sender<()>,
}

impl LiveTls {
    pub(crate) fn new(tls: ServerTls) -> Self {
        let config = tls.http2_config();
        Self(Mutex::new(State { tls, config, clients: Vec::new() }))
    }

    /// Returns the configuration of new connections.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.lock().config)
    }

    /// Returns when the certificates of the server expire, in seconds since 1970.
    pub(crate) fn expiry(&self) -> Vec<Option<u64>> {
        self.lock().tls.expiry()
    }

    /// Registers a connection with the certificates of its client. Returns a receiver that becomes
    /// ready when the connection must close, or `None` if the certificate is no longer accepted.
    pub(crate) fn admit(
        &self,
        certificates: &[CertificateDer<'static>],
    ) -> Option<oneshot::Receiver<()>> {
        let mut state = self.lock();
        if !state.tls.accepts(certificates) {
            return None;
        }
        state.clients.retain(|client| !client.close.is_closed());
        let (close, closing) = oneshot::channel();
        state.clients.push(Client { certificates: certificates.to_vec(), close });
        Some(closing)
    }

    /// Checks that clients need a certificate with this TLS if and only if they need one now.
    fn check(&self, tls: &ServerTls) -> Result<(), ReloadError> {
        let was_on = self.lock().tls.needs_client_certificate();
        check_switch("certificates of clients", was_on, tls.needs_client_certificate())
    }

    /// Replaces TLS. Returns the number of connections that were closed.
    fn replace(&self, tls: ServerTls) -> usize {
        let mut state = self.lock();
        (state.config, state.tls) = (tls.http2_config(), tls);
        let (kept, closed) = std::mem::take(&mut state.clients)
            .into_iter()
            .filter(|client| !client.close.is_closed())
            .partition(|client| state.tls.accepts(&client.certificates));
        state.clients = kept;
        let closed: Vec<Client> = closed;
        let count = closed.len();
        for client in closed {
            // The connection may have closed by itself.
            let _ = client.close.send(());
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid after each statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
