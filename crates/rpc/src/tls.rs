//! TLS: files in PEM, read and looked at before anything begins.

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

/// A connection that has not shaken hands by then is closed.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why there is no TLS: a file, and what is wrong with it.
#[derive(Debug)]
pub struct TlsError {
    path: PathBuf,
    problem: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for TlsError {}

/// What a server needs to speak TLS.
#[derive(Clone)]
pub struct ServerTls {
    config: ServerTlsConfig,
    asks_for_certificate: bool,
}

impl ServerTls {
    /// Reads the server's certificate with those that lead from it to one that clients trust, and
    /// its private key.
    pub fn open(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let config = ServerTlsConfig::new().timeout(HANDSHAKE);
        let config = config.identity(identity(cert, key)?);
        Ok(Self { config, asks_for_certificate: false })
    }

    /// Reads certificates of whoever signs those of clients. Clients must have one then.
    pub fn client_ca(self, path: &Path) -> Result<Self, TlsError> {
        let config = self.config.client_ca_root(certificates(path)?);
        Ok(Self { config, asks_for_certificate: true })
    }

    pub(crate) fn config(&self) -> ServerTlsConfig {
        self.config.clone()
    }

    pub(crate) fn asks_for_certificate(&self) -> bool {
        self.asks_for_certificate
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

/// What a client needs to speak TLS.
#[derive(Clone, Debug)]
pub struct ClientTls(pub(crate) ClientTlsConfig);

impl ClientTls {
    /// Reads the certificates that a server's must lead to.
    pub fn open(ca: &Path) -> Result<Self, TlsError> {
        let config = ClientTlsConfig::new().timeout(HANDSHAKE);
        Ok(Self(config.ca_certificate(certificates(ca)?)))
    }

    /// Reads a certificate to show to the server, and its private key.
    pub fn identity(self, cert: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self(self.0.identity(identity(cert, key)?)))
    }

    /// Expects a certificate for this name rather than for the host of the address.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self(self.0.domain_name(name))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| refuse(path, error.to_string()))
}

fn refuse(path: &Path, problem: String) -> TlsError {
    TlsError { path: path.to_owned(), problem }
}

/// A file that should have been PEM with something in it.
fn unreadable(path: &Path, error: &pem::Error, expected: &str) -> TlsError {
    match error {
        pem::Error::NoItemsFound => refuse(path, format!("expected {expected} in PEM, found none")),
        error => refuse(path, error.to_string()),
    }
}

fn certificates(path: &Path) -> Result<Certificate, TlsError> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if found.is_empty() => {
            Err(unreadable(path, &pem::Error::NoItemsFound, "certificates"))
        }
        Ok(_) => Ok(Certificate::from_pem(bytes)),
        Err(error) => Err(unreadable(path, &error, "certificates")),
    }
}

fn identity(cert: &Path, key: &Path) -> Result<Identity, TlsError> {
    let certificates = certificates(cert)?;
    let bytes = read(key)?;
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(_) => Ok(Identity::from_pem(certificates, bytes)),
        Err(error) => Err(unreadable(key, &error, "a private key")),
    }
}
