//! Reads certificates and private keys, and says what is wrong with a file and how to mend it.

use rustix::process::geteuid;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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

impl TlsError {
    pub(super) fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), problem: problem.into() }
    }
}

/// What a file must hold.
#[derive(Clone, Copy)]
enum Content {
    Certificates,
    PrivateKey,
}

impl fmt::Display for Content {
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

/// Reads the certificates of a file, of which there is at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path, Content::Certificates)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unusable(path, &bytes, &pem::Error::NoItemsFound, Content::Certificates)),
        Err(error) => Err(unusable(path, &bytes, &error, Content::Certificates)),
    }
}

/// Reads the private key of a file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(path, Content::PrivateKey)?;
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| unusable(path, &bytes, &error, Content::PrivateKey))
}

fn read(path: &Path, content: Content) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| {
        let problem = unreadable(&error);
        TlsError::new(path, format!("expected {content}, but {problem}"))
    })
}

/// Returns why a file cannot be read, and what to do about it.
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

/// Refuses a file without what it must hold, and says what it holds instead.
fn unusable(path: &Path, bytes: &[u8], error: &pem::Error, content: Content) -> TlsError {
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
