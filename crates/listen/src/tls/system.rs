//! The CA certificates that the system trusts, for clients.

use super::files::TlsError;
use rustls::RootCertStore;
use std::path::PathBuf;

/// Returns the CA certificates of the system. As with OpenSSL, the environment variables
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them. `setting` is the setting that names other ones,
/// for the error.
///
/// # Errors
///
/// Fails if the system has no usable CA certificate.
pub fn system_roots(setting: &str) -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let place = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let place = place.unwrap_or_else(|| PathBuf::from("the system's certificates"));
    let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
    let remedy = format!("install `ca-certificates`, or name a file with {setting}");
    Err(TlsError::new(&place, format!("expected certificates, found none{why}; {remedy}")))
}
