//! The arguments of servers for TLS.

use crate::files::warn_if_world_readable;
use crate::outcome::Failure;
use clap::Args;
use nuthatch_rpc::{ServerTls, TlsError};
use std::path::{Path, PathBuf};

/// The arguments with the files of TLS.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct TlsArgs {
    /// The server's certificate and its chain, in PEM
    #[arg(id = "tls_cert", long = "tls-cert", value_name = "FILE", requires = "tls_key")]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(id = "tls_key", long = "tls-key", value_name = "FILE", requires = "tls_cert")]
    pub(crate) key: Option<PathBuf>,
    /// CA certificates in PEM; clients must then present a certificate issued by one of them
    #[arg(
        id = "tls_client_ca",
        long = "tls-client-ca",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub(crate) client_ca: Option<PathBuf>,
}

/// Reads the files of TLS, and warns if other users can read the key.
pub(crate) fn server_tls(cert: &Path, key: &Path, ca: Option<&Path>) -> Result<ServerTls, Failure> {
    let failed = |error: TlsError| Failure::Error(error.to_string());
    warn_if_world_readable(key);
    let tls = ServerTls::open(cert, key).map_err(failed)?;
    ca.map_or(Ok(tls.clone()), |ca| tls.client_ca(ca).map_err(failed))
}
