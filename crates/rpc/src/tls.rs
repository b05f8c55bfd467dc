//! TLS: files in PEM, read and looked at before anything begins.

use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

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
    identity: CertifiedKey,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    pub(crate) config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads the server's certificate with those that lead from it to one that clients trust, and
    /// its private key.
    pub fn open(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let identity = CertifiedKey::from_der(chain(cert)?, private_key(key)?, &provider);
        let identity = identity.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let expected = format!("expected the private key of {}", cert.display());
                refuse(
                    key,
                    format!(
                        "{expected}, found that of another certificate; name the key that this \
                         certificate was requested with"
                    ),
                )
            }
            error => refuse(cert, format!("not usable with {}: {error}", key.display())),
        })?;
        let config = config(&identity, None).map_err(|error| refuse(cert, error.to_string()))?;
        Ok(Self { identity, verifier: None, config })
    }

    /// Reads certificates of whoever signs those of clients. Clients must have one then.
    pub fn client_ca(self, path: &Path) -> Result<Self, TlsError> {
        let refused = |error: &dyn fmt::Display| refuse(path, error.to_string());
        let roots = Arc::new(roots(path)?);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|error| refused(&error))?;
        let config = config(&self.identity, Some(&verifier)).map_err(|error| refused(&error))?;
        Ok(Self { verifier: Some(verifier), config, ..self })
    }

    pub(crate) fn asks_for_certificate(&self) -> bool {
        self.verifier.is_some()
    }

    /// Returns whether a client with these certificates may connect.
    pub(crate) fn accepts(&self, certificates: &[CertificateDer<'static>]) -> bool {
        let Some(verifier) = &self.verifier else { return true };
        certificates.split_first().is_some_and(|(own, others)| {
            verifier.verify_client_cert(own, others, UnixTime::now()).is_ok()
        })
    }
}

fn config(
    identity: &CertifiedKey,
    verifier: Option<&Arc<dyn ClientCertVerifier>>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.clone())));
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

/// What a client needs to speak TLS.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: ClientTlsConfig,
    ca: Option<PathBuf>,
}

impl ClientTls {
    /// Reads the certificates that a server's must lead to.
    pub fn open(ca: &Path) -> Result<Self, TlsError> {
        // Looked at here, so that an error names the file.
        roots(ca)?;
        let config = ClientTlsConfig::new();
        let config = config.ca_certificate(Certificate::from_pem(read(ca, CERTIFICATES)?));
        Ok(Self { config, ca: Some(ca.to_owned()) })
    }

    /// Trusts the CA certificates of the system. As with OpenSSL, the environment variables
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them.
    pub fn system() -> Result<Self, TlsError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let place = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
            let place = place.unwrap_or_else(|| PathBuf::from("the system's certificates"));
            let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
            let remedy = "install `ca-certificates`, or name a file with --tls-ca (`ca`)";
            return Err(refuse(
                &place,
                format!("expected certificates, found none{why}; {remedy}"),
            ));
        }
        let config = ClientTlsConfig::new().trust_anchors(roots.roots);
        Ok(Self { config, ca: None })
    }

    /// Reads a certificate to show to the server, and its private key.
    pub fn identity(mut self, cert: &Path, key: &Path) -> Result<Self, TlsError> {
        // As a server with them would.
        ServerTls::open(cert, key)?;
        let identity = Identity::from_pem(read(cert, CERTIFICATES)?, read(key, PRIVATE_KEY)?);
        self.config = self.config.identity(identity);
        Ok(self)
    }

    /// Expects a certificate for this name rather than for the host of the address.
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

const CERTIFICATES: &str = "certificates";
const PRIVATE_KEY: &str = "a private key";

fn read(path: &Path, expected: &str) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| {
        let problem = match error.kind() {
            ErrorKind::NotFound => "found no such file; check the path".to_owned(),
            ErrorKind::PermissionDenied => {
                "but the file may not be read; check its owner and mode".to_owned()
            }
            _ => format!("but the file cannot be read: {error}"),
        };
        refuse(path, format!("expected {expected} in PEM, {problem}"))
    })
}

fn refuse(path: &Path, problem: String) -> TlsError {
    TlsError { path: path.to_owned(), problem }
}

/// Returns the error for a file that should contain PEM, with what was found instead.
fn unreadable(path: &Path, bytes: &[u8], error: &pem::Error, expected: &str) -> TlsError {
    let has = |label: &str| bytes.windows(label.len()).any(|part| part == label.as_bytes());
    let found = match error {
        pem::Error::NoItemsFound if has("-----BEGIN ENCRYPTED PRIVATE KEY") => {
            "an encrypted key; `openssl pkey -in FILE -out PLAIN` decrypts it"
        }
        pem::Error::NoItemsFound if has("PRIVATE KEY-----") => {
            "a private key; were certificate and key swapped?"
        }
        pem::Error::NoItemsFound if has("-----BEGIN CERTIFICATE") => {
            "certificates; were certificate and key swapped?"
        }
        pem::Error::NoItemsFound if bytes.first() == Some(&0x30) => {
            "DER; `openssl x509 -inform der` or `openssl pkey -inform der` converts it"
        }
        pem::Error::NoItemsFound => "none; such a file has lines `-----BEGIN …-----`",
        error => &error.to_string(),
    };
    refuse(path, format!("expected {expected} in PEM, found {found}"))
}

/// Returns the certificates of a file, at least one.
fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path, CERTIFICATES)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if found.is_empty() => {
            Err(unreadable(path, &bytes, &pem::Error::NoItemsFound, CERTIFICATES))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(unreadable(path, &bytes, &error, CERTIFICATES)),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots.add(certificate).map_err(|error| {
            refuse(path, format!("expected CA certificates, found one that is damaged: {error}"))
        })?;
    }
    Ok(roots)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(path, PRIVATE_KEY)?;
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| unreadable(path, &bytes, &error, PRIVATE_KEY))
}
