//! The arguments of servers for the admin endpoint and the log.

use super::listen::not_started;
use crate::logs::{self, Logs};
use crate::outcome::Failure;
use clap::Args;
use nuthatch_server::Address;
use nuthatch_server::admin::{Admin, Format, MetricsSource};
use std::sync::Arc;

/// The problem of an admin endpoint that other machines can reach.
pub(crate) const EXPOSED_ADMIN: &str =
    "this address is reachable by other machines, and the admin endpoint has no login";

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
