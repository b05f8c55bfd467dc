//! The TLS configuration of a server.

use super::expiry::expiry;
use super::files::{TlsError, certificates, no_issuers, private_key, roots};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::{CertificateDer, UnixTime};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The TLS configuration of a server: its certificate and private key, and, if clients need a
/// certificate, the issuers that it trusts.
#[derive(Clone)]
pub struct ServerTls {
    identity: CertifiedKey,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads the file `cert`, with the server's certificate followed by its chain up to one that
    /// clients trust, and the file `key`, with its private key. Clients need no certificate.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, has other content than expected, or if certificate and key
    /// do not belong together. The error names the file, what was expected and found, and what to
    /// do.
    pub fn open(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::open_with(cert, key, None)
    }

    /// Reads the same files as [`open`](Self::open), and before them the file of
    /// [`client_ca`](Self::client_ca), if its path is given.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open) and [`client_ca`](Self::client_ca).
    pub fn open_with(cert: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Self, TlsError> {
        let verifier = client_ca.map(verifier).transpose()?;
        let provider = default_provider();
        let identity = CertifiedKey::from_der(certificates(cert)?, private_key(key)?, &provider);
        let identity = identity.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let problem = format!(
                    "expected the private key of {}, found that of another certificate; name the \
                     key that the certificate was issued for",
                    cert.display()
                );
                TlsError::new(key, problem)
            }
            error => {
                let problem = format!("not usable with the key {}: {error}", key.display());
                TlsError::new(cert, problem)
            }
        })?;
        let config = config(&identity, verifier.as_ref());
        let config = config.map_err(|error| TlsError::new(cert, error.to_string()))?;
        Ok(Self { identity, verifier, config })
    }

    /// Reads the certificates of trusted issuers. From then on, clients need a certificate that one
    /// of them has issued.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or has no valid CA certificate.
    pub fn client_ca(self, path: &Path) -> Result<Self, TlsError> {
        let verifier = verifier(path)?;
        let config = config(&self.identity, Some(&verifier));
        let config = config.map_err(|error| TlsError::new(path, error.to_string()))?;
        Ok(Self { verifier: Some(verifier), config, ..self })
    }

    /// Returns the rustls configuration for connections, without protocols for ALPN.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Returns the rustls configuration for connections that speak HTTP/2, with `h2` for ALPN.
    #[must_use]
    pub fn http2_config(&self) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }

    /// Returns when the server's certificate and those of its issuers that it sends expire, in
    /// seconds since 1970. `None` is a certificate whose time cannot be read.
    #[must_use]
    pub fn expiry(&self) -> Vec<Option<u64>> {
        self.identity.cert.iter().map(|certificate| expiry(certificate)).collect()
    }

    /// Returns whether clients need a certificate.
    #[must_use]
    pub fn needs_client_certificate(&self) -> bool {
        self.verifier.is_some()
    }

    /// Returns whether a client with these certificates may connect: its own, followed by those of
    /// its issuers. Returns true for all clients if they need no certificate.
    #[must_use]
    pub fn accepts(&self, certificates: &[CertificateDer<'_>]) -> bool {
        let Some(verifier) = &self.verifier else { return true };
        certificates.split_first().is_some_and(|(own, issuers)| {
            verifier.verify_client_cert(own, issuers, UnixTime::now()).is_ok()
        })
    }
}

/// Creates a verifier of client certificates from a file with those of their issuers.
fn verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let (roots, provider) = (Arc::new(roots(path)?), Arc::new(default_provider()));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
    verifier.map_err(|error| no_issuers(path, &error))
}

fn config(
    identity: &CertifiedKey,
    verifier: Option<&Arc<dyn ClientCertVerifier>>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
        None => builder.with_no_client_auth(),
    };
    let resolver = Arc::new(SingleCertAndKey::from(identity.clone()));
    Ok(Arc::new(builder.with_cert_resolver(resolver)))
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}
