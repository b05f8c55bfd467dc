//! Connections to PostgreSQL.

use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::{Source, Tls};
use crate::sources::runtime::ConnectionRuntime;
use crate::sources::{Dialect, Nul, tls};
use nuthatch_filesystem::file_limit_advice;
use std::cell::Cell;
use std::error::Error as _;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

/// How queries are written.
pub(super) const DIALECT: Dialect =
    Dialect { name_quote: '"', has_backslash_escapes: false, nul: Nul::Plain };
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time in which a connection is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Dates and times as text in a form that does not depend on the server, floats with all their
/// digits, and no limit of the time that the transaction takes.
const SETTINGS: &str = "set datestyle = 'ISO'; set intervalstyle = 'iso_8601'; \
                        set timezone = 'UTC'; set extra_float_digits = 1; \
                        set bytea_output = 'hex'; set client_encoding = 'UTF8'; \
                        set standard_conforming_strings = on; \
                        set statement_timeout = 0; set idle_in_transaction_session_timeout = 0";

/// Connects to a database.
pub(super) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    interruption: Interruption,
    /// The address without secrets.
    pub(super) name: String,
}

impl Connector {
    /// Reads the password, and the certificates of authorities.
    pub(super) fn new(source: &Source, url: &Url, interruption: &Interruption) -> Result<Self> {
        let name = source.name();
        let mode = tls::mode(source, url)?;
        let mut config: Config = without_tls_parameters(url)
            .as_str()
            .parse()
            .map_err(|error: tokio_postgres::Error| Error::source(&name, chain(&error)))?;
        let variable = || std::env::var("PGPASSWORD").ok();
        let password =
            source.password.as_ref().map(|secret| secret.read(interruption)).transpose()?;
        if let Some(password) = password {
            config.password(password);
        } else if let Some(password) = variable().filter(|_| config.get_password().is_none()) {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("nuthatch-populate");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        let tls = match mode {
            Tls::Off => {
                config.ssl_mode(SslMode::Disable);
                None
            }
            mode => {
                config.ssl_mode(SslMode::Require);
                Some(MakeRustlsConnect::new(tls::client(source, mode, interruption)?))
            }
        };
        Ok(Self { config, tls, interruption: interruption.clone(), name })
    }

    /// Connects.
    pub(super) fn connect(&self) -> Result<Connection> {
        let runtime = ConnectionRuntime::start()?;
        let connecting = async {
            // The errors of a connection are those of its requests.
            let (client, task) = if let Some(tls) = &self.tls {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                (client, tokio::spawn(async { drop(connection.await) }))
            } else {
                let (client, connection) = self.config.connect(NoTls).await?;
                (client, tokio::spawn(async { drop(connection.await) }))
            };
            client.batch_execute(SETTINGS).await?;
            Ok((client, task))
        };
        let connected = runtime.block_on(self.interruption.or_no_answer(&self.name, connecting))?;
        let (client, task) = connected.map_err(|error| failure(&self.name, &error))?;
        Ok(Connection {
            runtime,
            client: Some(client),
            task,
            tls: self.tls.clone(),
            interruption: self.interruption.clone(),
            is_copying: Cell::new(false),
            name: self.name.clone(),
        })
    }
}

/// A connection for one thread.
pub(super) struct Connection {
    runtime: ConnectionRuntime,
    /// `None` only while the connection is closed.
    client: Option<Client>,
    task: JoinHandle<()>,
    tls: Option<MakeRustlsConnect>,
    interruption: Interruption,
    /// Whether a copy was not read to its end.
    pub(super) is_copying: Cell<bool>,
    /// The address without secrets.
    pub(super) name: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        let is_open = self.is_copying.get() || self.interruption.is_set();
        let closing = async {
            if is_open {
                // The server would execute the query to its end.
                let token = client.cancel_token();
                let _ = match self.tls.clone() {
                    Some(tls) => token.cancel_query(tls).await,
                    None => token.cancel_query(NoTls).await,
                };
            }
            // Without the client, the task ends the session; the server would log an error
            // otherwise.
            drop(client);
            let _ = (&mut self.task).await;
        };
        let _ = self.runtime.block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, closing).await });
    }
}

impl Connection {
    /// Runs a request to its end, or until the job is interrupted.
    pub(super) fn run<T>(
        &self,
        request: impl AsyncFnOnce(&Client, &Interruption) -> Result<T>,
    ) -> Result<T> {
        let client = self.client.as_ref().expect("an open connection");
        self.runtime.block_on(request(client, &self.interruption))
    }

    /// Executes statements.
    pub(super) fn execute(&self, statements: &str) -> Result<()> {
        self.run(async |client, interruption| {
            let done = interruption.or(client.batch_execute(statements)).await?;
            done.map_err(|error| failure(&self.name, &error))
        })
    }

    /// Prepares a query, which tells its columns. A text of several statements fails.
    pub(super) fn prepare(&self, query: &str) -> Result<Statement> {
        self.run(async |client, interruption| {
            let prepared = interruption.or(client.prepare(query)).await?;
            prepared.map_err(|error| failure(&self.name, &error))
        })
    }

    /// Returns the number of rows and of bytes that the planner expects.
    pub(super) fn estimate(&self, query: &str) -> Option<(u64, u64)> {
        // A failure of the query itself is reported when it is read, in a transaction that goes on.
        self.execute("savepoint estimate").ok()?;
        // A text of several statements cannot be prepared, and must not be executed otherwise.
        let plan = self
            .prepare(query)
            .and_then(|_| self.first_value(&format!("explain (format json) {query}")));
        self.execute("rollback to savepoint estimate").ok()?;
        let plan = plan.ok()??;
        let plan: serde_json::Value = serde_json::from_str(&plan).ok()?;
        let plan = &plan[0]["Plan"];
        let (rows, width) = (plan["Plan Rows"].as_f64()?, plan["Plan Width"].as_f64()?);
        #[expect(clippy::cast_sign_loss, reason = "the planner expects no fewer than zero")]
        let estimate = (rows as u64, (rows * width) as u64);
        Some(estimate)
    }

    /// Returns the first value of the first row of a query, as text.
    pub(super) fn first_value(&self, query: &str) -> Result<Option<String>> {
        let messages = self.run(async |client, interruption| {
            let messages = interruption.or(client.simple_query(query)).await?;
            messages.map_err(|error| failure(&self.name, &error))
        })?;
        Ok(messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }
}

/// Returns the address without the parameters that [`tls::mode`] reads, which the library does not
/// know in all their forms.
fn without_tls_parameters(url: &Url) -> Url {
    let mut plain = url.clone();
    let others: Vec<_> = url
        .query_pairs()
        .filter(|(name, _)| !name.starts_with("ssl"))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    plain.set_query(None);
    if !others.is_empty() {
        plain.query_pairs_mut().extend_pairs(others);
    }
    plain
}

/// Returns the error of a source, with its causes.
pub(super) fn failure(name: &str, error: &tokio_postgres::Error) -> Error {
    let is_transient = match error.code() {
        Some(code) => {
            let passing = [
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
                SqlState::TOO_MANY_CONNECTIONS,
                // A standby removed rows that the snapshot needs.
                SqlState::T_R_SERIALIZATION_FAILURE,
            ];
            passing.contains(code) || code.code().starts_with("08")
        }
        None => error.is_closed() || is_io(error),
    };
    Error::Source { source: name.to_owned(), message: chain(error), is_transient }
}

/// Returns whether the network failed. A limit of this process does not pass by itself.
fn is_io(error: &tokio_postgres::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| {
        // Rustls: a certificate that is not valid stays so.
        file_limit_advice(source).is_none() && source.kind() != std::io::ErrorKind::InvalidData
    })
}

/// Returns the text of an error and of its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        cause = error.source();
    }
    text
}
