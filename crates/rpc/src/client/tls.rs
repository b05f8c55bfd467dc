//! TLS of clients: files in PEM, which are checked before a client connects.

use nuthatch_listen::tls::{PemContent, ServerTls, TlsError, read, roots, system_roots};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// The TLS settings of a client: the CA certificates that it trusts, and an optional certificate of
/// its own.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: ClientTlsConfig,
    ca: Option<PathBuf>,
}

impl ClientTls {
    /// Reads the CA certificates to trust from a PEM file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or has no valid CA certificate.
    pub fn open(ca: &Path) -> Result<Self, TlsError> {
        // Checked here, so that an error names the file.
        roots(ca)?;
        let config = ClientTlsConfig::new();
        let config =
            config.ca_certificate(Certificate::from_pem(read(ca, PemContent::Certificates)?));
        Ok(Self { config, ca: Some(ca.to_owned()) })
    }

    /// Trusts the CA certificates of the system. As with OpenSSL, the environment variables
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them.
    ///
    /// # Errors
    ///
    /// Fails if the system has no usable CA certificate.
    pub fn system() -> Result<Self, TlsError> {
        let roots = system_roots("--tls-ca (`ca`)")?;
        let config = ClientTlsConfig::new().trust_anchors(roots.roots);
        Ok(Self { config, ca: None })
    }

    /// Reads the certificate that the client presents to the server, and its private key, from PEM
    /// files.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or has no PEM block of its kind, or if key and certificate do
    /// not belong together.
    pub fn identity(mut self, cert: &Path, key: &Path) -> Result<Self, TlsError> {
        // Checks that key and certificate belong together.
        ServerTls::open(cert, key)?;
        let identity = Identity::from_pem(
            read(cert, PemContent::Certificates)?,
            read(key, PemContent::PrivateKey)?,
        );
        self.config = self.config.identity(identity);
        Ok(self)
    }

    /// Sets the name that the server's certificate must have; by default the host of the address.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.config = self.config.domain_name(name);
        self
    }

    /// Returns the settings for tonic, with a limit for the handshake.
    pub(crate) fn config(&self, handshake: Duration) -> ClientTlsConfig {
        self.config.clone().timeout(handshake)
    }

    /// Returns the file with the certificates that are trusted; `None` for those of the system.
    pub(crate) fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }
}
