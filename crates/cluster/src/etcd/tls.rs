//! TLS of connections to etcd: files in PEM, which are checked before the first connection.

use nuthatch_listen::tls::{PemContent, ServerTls, TlsError, read, roots, system_roots};
use std::path::Path;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// How connections to etcd are secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Security {
    /// Not at all.
    None,
    /// The client checks the certificate of etcd.
    Tls,
    /// The client presents a certificate, too.
    ClientCertificate,
}

/// The CA certificates that are trusted, and an optional client certificate.
#[derive(Clone, Debug)]
pub struct EtcdTls {
    pub(super) config: ClientTlsConfig,
    pub(super) security: Security,
}

impl EtcdTls {
    /// Reads the CA certificates to trust from a PEM file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or has no valid CA certificate.
    pub fn open(ca: &Path) -> Result<Self, TlsError> {
        // Checked here, so that an error names the file.
        roots(ca)?;
        let certificates = Certificate::from_pem(read(ca, PemContent::Certificates)?);
        Ok(Self::trusting(ClientTlsConfig::new().ca_certificate(certificates)))
    }

    /// Trusts the CA certificates of the system. As with OpenSSL, the environment variables
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them.
    ///
    /// # Errors
    ///
    /// Fails if the system has no usable CA certificate.
    pub fn system() -> Result<Self, TlsError> {
        let roots = system_roots("etcd-ca")?.roots;
        Ok(Self::trusting(ClientTlsConfig::new().trust_anchors(roots)))
    }

    fn trusting(config: ClientTlsConfig) -> Self {
        Self { config, security: Security::Tls }
    }

    /// Reads the certificate that the client presents, and its private key, from PEM files.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or has no PEM block of its kind, or if key and certificate do
    /// not belong together.
    pub fn identity(self, cert: &Path, key: &Path) -> Result<Self, TlsError> {
        // Checks that key and certificate belong together.
        ServerTls::open(cert, key)?;
        let certificates = read(cert, PemContent::Certificates)?;
        let identity = Identity::from_pem(certificates, read(key, PemContent::PrivateKey)?);
        Ok(Self { config: self.config.identity(identity), security: Security::ClientCertificate })
    }
}
