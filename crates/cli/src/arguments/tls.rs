//! The arguments of servers for TLS.

use clap::Args;
use std::path::PathBuf;

/// The files of TLS.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct TlsArguments {
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
