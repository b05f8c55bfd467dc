//! Stores behind a server, for commands that wait for each response.

use crate::files::read_text;
use crate::outcome::Failure;
use clap::Args;
use nuthatch_rpc::{Client, ClientOptions, ClientTls, Scan};
use nuthatch_store::Row;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Maximum length of a file with a token, in bytes.
const MAX_TOKEN_LEN: u64 = 64 << 10;

/// The heading of the options for servers. Each option names it, since a heading of the whole
/// struct would also apply to the arguments that follow the struct.
const HEADING: &str = "Stores at grpc://HOST:PORT";

/// Options of connections to a store at `grpc://` or `grpcs://`. Commands flatten them last, so
/// that help shows them below their own options.
#[derive(Debug, Args)]
pub(super) struct ConnectionArgs {
    /// File with the token to present: one line of printable ASCII without spaces
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    token_file: Option<String>,
    /// CA certificates in PEM for the server at grpcs://HOST:PORT; by default those that the system
    /// trusts
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    tls_ca: Option<PathBuf>,
    /// Client certificate to present, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = HEADING)]
    tls_cert: Option<PathBuf>,
    /// Private key of the client certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = HEADING)]
    tls_key: Option<PathBuf>,
    /// Milliseconds to wait for a connection, including retries
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = HEADING)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    connect_timeout_ms: u64,
    /// Milliseconds to wait for the response to a call, or for the start of a stream
    ///
    /// A write without a response in time may have been executed. A stream in progress (scan, dump,
    /// load, watch, backup) has no such limit: it fails if the server does not respond to a ping
    /// within 20 seconds.
    #[arg(long, value_name = "N", default_value_t = 30_000, help_heading = HEADING)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: u64,
}

/// The option of the commands that reconnect, `watch` and `load`.
#[derive(Debug, Args)]
pub(super) struct ReconnectArgs {
    /// Milliseconds to try to reconnect after a lost connection
    #[arg(long, value_name = "N", default_value_t = 30_000, help_heading = HEADING)]
    reconnect_ms: u64,
}

impl ReconnectArgs {
    /// Returns the options with the time to reconnect.
    pub(super) fn apply(&self, options: ClientOptions) -> ClientOptions {
        options.reconnect(self.limit())
    }

    /// Returns how long to try to reconnect.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_millis(self.reconnect_ms)
    }
}

/// A connection to a server, and its runtime.
pub(super) struct RemoteStore {
    pub(super) address: String,
    pub(super) client: Client,
    runtime: Runtime,
}

impl RemoteStore {
    pub(super) fn connect(address: &str, options: &ClientOptions) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Error(error.to_string()))?;
        let client = runtime.block_on(Client::connect_with(address, options));
        let (address, client) = (address.to_owned(), client.map_err(Failure::from)?);
        Ok(Self { address, client, runtime })
    }

    /// Waits for a call.
    pub(super) fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// Waits for a call, and converts its error.
    pub(super) fn call<T>(
        &self,
        call: impl Future<Output = nuthatch_rpc::Result<T>>,
    ) -> Result<T, Failure> {
        self.wait(call).map_err(|error| self.failure(&error))
    }

    /// Returns an error with the address of the server.
    pub(super) fn failure(&self, error: &nuthatch_rpc::Error) -> Failure {
        let message = error.message();
        // Errors about the server itself already have the address.
        let prefix = format!("{}: ", self.address);
        Failure::Error(format!("{prefix}{}", message.strip_prefix(&prefix).unwrap_or(message)))
    }

    /// Calls `on_row` for each row of a scan, with the number of rows so far.
    pub(super) fn rows(
        &self,
        table: &str,
        scan: &Scan,
        mut on_row: impl FnMut(Row<'_>, u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (mut rows, mut done) = (self.client.scan(table, scan), 0);
        while let Some(batch) = self.wait(rows.next()) {
            for row in batch.map_err(|error| self.failure(&error))?.iter() {
                done += 1;
                on_row(row, done)?;
            }
        }
        Ok(())
    }
}

impl ConnectionArgs {
    /// Returns the options, with the files read that they name.
    pub(super) fn options(&self) -> Result<ClientOptions, Failure> {
        let failed = |error: nuthatch_rpc::TlsError| Failure::Error(error.to_string());
        let mut options = ClientOptions::new()
            .connect_timeout(Duration::from_millis(self.connect_timeout_ms))
            .timeout(Duration::from_millis(self.timeout_ms));
        if let Some(file) = &self.token_file {
            options = options.token(token(file)?);
        }
        if self.tls_ca.is_some() || self.tls_cert.is_some() {
            let mut tls = match &self.tls_ca {
                Some(ca) => ClientTls::open(ca),
                None => ClientTls::system(),
            }
            .map_err(failed)?;
            if let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) {
                tls = tls.identity(cert, key).map_err(failed)?;
            }
            options = options.tls(tls);
        }
        Ok(options)
    }
}

/// Reads the token from a file.
fn token(file: &str) -> Result<String, Failure> {
    let text = read_text(file, MAX_TOKEN_LEN)?;
    let token = text.trim_end_matches(['\n', '\r']);
    let found = if token.is_empty() {
        "nothing"
    } else if token.contains('\n') {
        "several lines"
    } else if token.contains(|c: char| !c.is_ascii_graphic()) {
        "a space or another character"
    } else {
        return Ok(token.to_owned());
    };
    let rule = "expected one line with a token of printable ASCII without spaces, which is the \
                text that the server's file of tokens has after >";
    Err(Failure::Error(format!("{file}: {rule}; found {found}")))
}
