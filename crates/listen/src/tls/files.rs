//! Reads certificates and private keys in PEM. Errors name the file, what was expected and found,
//! and what to do.

use crate::readable::open_readable;
use rustix::process::geteuid;
use rustls::RootCertStore;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The error for a file that cannot be used for TLS: its path, and what is wrong with it.
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

impl TlsError {
    /// Creates the error for a file. `problem` should say what was expected, what was found and
    /// what to do.
    pub fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), problem: problem.into() }
    }
}

/// What a file must contain.
#[derive(Clone, Copy, Debug)]
pub enum PemContent {
    /// One certificate or more.
    Certificates,
    /// A private key.
    PrivateKey,
}

impl fmt::Display for PemContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificates => "a certificate chain in PEM (BEGIN CERTIFICATE)",
            Self::PrivateKey => {
                "a private key in PEM (PKCS#8 BEGIN PRIVATE KEY, SEC1 BEGIN EC PRIVATE KEY or \
                 PKCS#1 BEGIN RSA PRIVATE KEY)"
            }
        })
    }
}

/// Reads the certificates of a file.
///
/// # Errors
///
/// Fails if the file cannot be read or does not contain at least one certificate in PEM.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path, PemContent::Certificates)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unusable(path, &bytes, &pem::Error::NoItemsFound, PemContent::Certificates)),
        Err(error) => Err(unusable(path, &bytes, &error, PemContent::Certificates)),
    }
}

/// Reads the certificates of a file as those of trusted issuers.
///
/// # Errors
///
/// Fails if the file cannot be read or does not contain at least one valid certificate in PEM.
pub fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| no_issuers(path, &error))?;
    }
    Ok(roots)
}

/// Returns the error for a file with a certificate that cannot be that of an issuer.
pub(super) fn no_issuers(path: &Path, error: &dyn fmt::Display) -> TlsError {
    let problem = format!("expected certificates of issuers, found one that is not: {error}");
    TlsError::new(path, problem)
}

/// Reads the private key of a file.
///
/// # Errors
///
/// Fails if the file cannot be read or does not contain an unencrypted private key in PEM.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(path, PemContent::PrivateKey)?;
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| unusable(path, &bytes, &error, PemContent::PrivateKey))
}

/// Reads the bytes of a file, without a check of their content. `content` is what the error says
/// that the file should contain.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn read(path: &Path, content: PemContent) -> Result<Vec<u8>, TlsError> {
    let read = || {
        let mut bytes = Vec::new();
        open_readable(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| {
        let problem = unreadable(&error);
        TlsError::new(path, format!("expected {content}, but {problem}"))
    })
}

/// Returns a text for the error of a file that cannot be read: the reason, and what to do.
#[must_use]
pub fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; check the path".to_owned(),
        io::ErrorKind::PermissionDenied => {
            let user = geteuid().as_raw();
            format!(
                "user {user}, as which this process runs, may not read it ({error}); change the \
                 owner or the mode of the file and of its folders"
            )
        }
        io::ErrorKind::IsADirectory => "it is a folder; name a file in it".to_owned(),
        _ => format!("it cannot be read: {error}"),
    }
}

/// Returns the error for a file without the content that it must have, with what it contains
/// instead.
fn unusable(path: &Path, bytes: &[u8], error: &pem::Error, content: PemContent) -> TlsError {
    let found = match error {
        pem::Error::NoItemsFound => found(bytes),
        error => format!("damaged PEM ({error}); copy the file again"),
    };
    TlsError::new(path, format!("expected {content}, found {found}"))
}

/// Describes a file by its first block of PEM, or by its first byte.
fn found(bytes: &[u8]) -> String {
    const BEGIN: &str = "-----BEGIN ";
    let text = String::from_utf8_lossy(bytes);
    let label =
        text.lines().find_map(|line| line.trim().strip_prefix(BEGIN)?.strip_suffix("-----"));
    match label {
        Some("CERTIFICATE") => {
            "a certificate; are certificate and key the wrong way round?".to_owned()
        }
        Some("ENCRYPTED PRIVATE KEY") => {
            "an encrypted key; `openssl pkey -in FILE -out PLAIN` decrypts it".to_owned()
        }
        Some(label) if label.ends_with("PRIVATE KEY") => {
            "a private key; are certificate and key the wrong way round?".to_owned()
        }
        Some(label) => format!("PEM with {}; name another file", label.escape_debug()),
        None if bytes.is_empty() => "an empty file; write it anew".to_owned(),
        // The sequence that certificates and keys begin with.
        None if bytes[0] == 0x30 => {
            "DER; `openssl x509 -inform der` or `openssl pkey -inform der` converts it".to_owned()
        }
        None => format!("{} bytes that are not PEM; name another file", bytes.len()),
    }
}
