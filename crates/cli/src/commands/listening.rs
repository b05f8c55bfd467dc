//! Arguments that servers have in common: the admin endpoint, logs, TLS, addresses and tokens.

use super::Failure;
use super::serve::{metrics_at, open_to_all, read_text};
use crate::logs::{self, Logs};
use crate::streams::Stdout;
use clap::Args;
use nuthatch_rpc::Tokens;
use nuthatch_server::Address;
use nuthatch_server::admin::{Admin, Format, MetricsSource};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum length of a file of tokens, in bytes.
const MAX_TOKENS_LEN: u64 = 16 << 20;

/// The problem of an admin endpoint that other machines can reach.
pub(crate) const EXPOSED_ADMIN: &str =
    "this address is reachable by other machines, and the admin endpoint has no login";

/// The minimum of limits of time, in milliseconds: less ends the requests of busy clients.
pub(crate) const MIN_LIMIT_MS: u64 = 100;

/// Where a server exports its metrics, and what it logs.
#[derive(Clone, Debug, Args)]
pub(crate) struct Watched {
    /// Address of the admin endpoint (HTTP): host:port or unix:PATH; can be repeated
    ///
    /// Prometheus metrics at /metrics, health at /healthz. No TLS and no password.
    #[arg(long, value_name = "ADDR", help_heading = "Access")]
    admin: Vec<Address>,
    /// What is logged to standard error: a level (error, warn, info, debug, trace or off), or
    /// levels by target, such as `warn,nuthatch::rpc=info`
    #[arg(long, value_name = "FILTER", default_value = "warn", help_heading = "Logs")]
    log: String,
    /// Log one JSON object per line
    #[arg(long, help_heading = "Logs")]
    log_json: bool,
}

impl Watched {
    /// Starts the log, which ends when the returned value is dropped.
    pub(crate) fn start_logs(&self) -> Result<Logs, Failure> {
        let format = if self.log_json { logs::Format::Json } else { logs::Format::Text };
        logs::start(&self.log, format)
    }

    /// Refuses addresses with a problem, and admin endpoints that other machines can reach, unless
    /// that is allowed.
    pub(crate) fn check(&self, problem: Option<String>, insecure: bool) -> Result<(), Failure> {
        if let Some(problem) = problem {
            return Err(Failure::Usage(format!("--listen {problem}; --insecure allows it")));
        }
        let exposed = self.admin.iter().find(|address| !address.is_local());
        match exposed.filter(|_| !insecure) {
            Some(address) => Err(Failure::Usage(format!(
                "--admin {address}: {EXPOSED_ADMIN}; --insecure allows it"
            ))),
            None => Ok(()),
        }
    }

    /// Tells what is counted, until the port is dropped; answers where, too.
    pub(crate) fn tell<C: Send + Sync + 'static>(
        &self,
        counts: C,
        exposition: fn(&C) -> String,
        is_stopping: fn(&C) -> bool,
    ) -> Result<(Admin, Vec<Address>), Failure> {
        let source: Arc<dyn MetricsSource> = Arc::new(Counted { counts, exposition, is_stopping });
        Admin::open(&self.admin, &source).map_err(|error| not_started("--admin", &error))
    }
}

/// What a server counts, for the admin port.
struct Counted<C> {
    counts: C,
    exposition: fn(&C) -> String,
    is_stopping: fn(&C) -> bool,
}

impl<C: Send + Sync + 'static> MetricsSource for Counted<C> {
    fn metrics(&self, format: Format) -> String {
        format.page(&(self.exposition)(&self.counts))
    }

    fn is_stopping(&self) -> bool {
        (self.is_stopping)(&self.counts)
    }
}

/// Prints where a server listens, where it tells what it counts, and a line of its own.
pub(crate) fn greet(
    scheme: &str,
    addresses: &[SocketAddr],
    admin: &[Address],
    line: &str,
) -> Result<(), Failure> {
    let listening = |address| format!("listening at {scheme}://{address}\n");
    let text: String = addresses.iter().map(listening).collect();
    let mut stdout = Stdout::new();
    stdout.put(format!("{text}{}{line}\n", metrics_at(admin)).as_bytes())?;
    stdout.flush()
}

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

/// An address to listen at.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected host:port, with a port from 0 to 65535";
    let mut found = text.to_socket_addrs().map_err(|error| format!("{expected}: {error}"))?;
    found.next().ok_or_else(|| expected.to_owned())
}

pub(crate) fn warn_if_open(secret: &Path) {
    if let Some(warning) = open_to_all(secret) {
        logs::warn(warning);
    }
}

/// Returns the failure of a server to start. If an address cannot be used, it names the flag that
/// chooses another one.
pub(crate) fn not_started(flag: &str, error: &io::Error) -> Failure {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    let message = match error.kind() {
        AddrInUse | AddrNotAvailable | PermissionDenied => {
            format!("{flag}: {error}; {flag} ADDR chooses another address")
        }
        _ => error.to_string(),
    };
    Failure::Error(message)
}

/// The tokens of a file.
pub(crate) fn read_tokens(file: &str) -> Result<Tokens, Failure> {
    warn_if_open(file.as_ref());
    let text = read_text(file, MAX_TOKENS_LEN)?;
    Tokens::parse(&text).map_err(|error| Failure::Error(format!("{file}: {error}")))
}
