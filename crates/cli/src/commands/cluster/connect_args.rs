//! The arguments for connections to nodes.

use super::connection::Connection;
use crate::files::read_secret;
use crate::outcome::Failure;
use clap::Args;
use nuthatch_listen::tls::{client_config, roots, system_roots};
use nuthatch_units::parse_time;
use rustls::ClientConfig;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const HEADING: &str = "Connection";

/// The arguments for connections to nodes. Commands flatten them last, so that help shows them
/// below their own options.
#[derive(Debug, Args)]
pub(super) struct ConnectArgs {
    /// Address of any node for clients of Redis
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    #[arg(value_parser = host_and_port, help_heading = HEADING)]
    server: String,
    /// Connect with TLS; also to the other nodes, at the addresses that they announce
    #[arg(long, help_heading = HEADING)]
    tls: bool,
    /// CA certificates in PEM for the nodes; by default those that the system trusts
    #[arg(long, value_name = "FILE", requires = "tls", help_heading = HEADING)]
    tls_ca: Option<PathBuf>,
    /// Client certificate to present, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["tls", "tls_key"], help_heading = HEADING)]
    tls_cert: Option<PathBuf>,
    /// Private key of the client certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = HEADING)]
    tls_key: Option<PathBuf>,
    /// User to log in as, with --password-file
    #[arg(long, value_name = "NAME", default_value = "default", help_heading = HEADING)]
    user: String,
    /// A file whose only line is the password, the same for all nodes
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    password_file: Option<PathBuf>,
    /// Maximum time for a connection, and for each whole response
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time_above_zero)]
    #[arg(help_heading = HEADING)]
    timeout: Duration,
}

/// How to connect to nodes, with the files read.
#[derive(Clone)]
pub(super) struct Connector {
    server: String,
    tls: Option<Arc<ClientConfig>>,
    /// User and password.
    login: Option<(String, String)>,
    timeout: Duration,
}

impl ConnectArgs {
    /// Reads the files that the arguments name.
    pub(super) fn connector(&self) -> Result<Connector, Failure> {
        let identity = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        let ca = self.tls_ca.as_deref();
        let tls = self
            .tls
            .then(|| client_config(ca.map_or_else(|| system_roots("--tls-ca"), roots)?, identity));
        let tls = tls.transpose().map_err(|error| Failure::Error(error.to_string()))?;
        let password = self.password_file.as_deref().map(|file| read_secret(file, "a password"));
        let login = password.transpose()?.map(|password| (self.user.clone(), password));
        if login.is_none() && self.user != "default" {
            let problem = "--user: expected --password-file too, found none";
            return Err(Failure::Usage(problem.to_owned()));
        }
        Ok(Connector { server: self.server.clone(), tls, login, timeout: self.timeout })
    }
}

impl Connector {
    /// Connects to the node of the command line.
    pub(super) fn connect(&self) -> Result<Connection, Failure> {
        self.connect_to(&self.server).map_err(Failure::Error)
    }

    /// Connects to a node at this address.
    ///
    /// # Errors
    ///
    /// Returns the address and the problem.
    pub(super) fn connect_to(&self, address: &str) -> Result<Connection, String> {
        let mut connection = Connection::open(address, self.tls.as_ref(), self.timeout)?;
        if let Some((user, password)) = &self.login {
            connection.request(&["AUTH", user, password])?;
        }
        Ok(connection)
    }
}

fn host_and_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(text.to_owned())
        }
        _ => Err("expected HOST:PORT, such as cache-1:6379".to_owned()),
    }
}

fn time_above_zero(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        Duration::ZERO => Err("expected a time above zero, such as 5s".to_owned()),
        time => Ok(time),
    }
}
