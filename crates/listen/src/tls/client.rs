//! TLS of clients.

use super::files::{TlsError, certificates, private_key};
use super::server::ServerTls;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// Returns the rustls configuration of connections to servers whose certificates are issued by one
/// of these CAs. The client presents an optional certificate, whose files in PEM are given with
/// that of its key.
///
/// # Errors
///
/// Fails if a file cannot be read or has no PEM block of its kind, or if key and certificate do not
/// belong together.
pub fn client_config(
    roots: RootCertStore,
    identity: Option<(&Path, &Path)>,
) -> Result<Arc<ClientConfig>, TlsError> {
    let failed = |error: rustls::Error| {
        let path = identity.map_or(Path::new("TLS"), |(cert, _)| cert);
        TlsError::new(path, error.to_string())
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(failed)?;
    let builder = builder.with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            // Checks that key and certificate belong together.
            ServerTls::open(cert, key)?;
            let chain = certificates(cert)?;
            builder.with_client_auth_cert(chain, private_key(key)?).map_err(failed)?
        }
    };
    Ok(Arc::new(config))
}
