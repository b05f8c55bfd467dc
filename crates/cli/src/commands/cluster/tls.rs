//! The TLS configuration of connections to nodes.

use nuthatch_listen::tls::{ServerTls, TlsError, certificates, private_key, roots};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the configuration with the certificates of a file, or those that the system trusts, and
/// an optional client certificate and its key.
pub(super) fn client_config(
    ca: Option<&Path>,
    identity: Option<(&Path, &Path)>,
) -> Result<Arc<ClientConfig>, TlsError> {
    let roots = ca.map_or_else(system_roots, roots)?;
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

fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    if roots.add_parsable_certificates(found.certs).0 > 0 {
        return Ok(roots);
    }
    let place = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let place = place.unwrap_or_else(|| PathBuf::from("the system's certificates"));
    let remedy = "install `ca-certificates`, or name a file with --tls-ca";
    Err(TlsError::new(&place, format!("expected certificates, found none; {remedy}")))
}
