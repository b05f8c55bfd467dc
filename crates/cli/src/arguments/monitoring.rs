//! The arguments of servers for the admin endpoint and the log.

use super::admin_access::{admin_rules, check_host};
use super::listen::start_failure;
use crate::files::world_readable_warning;
use crate::logs::{self, Logs, OTLP_DETAILS, OTLP_HELP};
use crate::outcome::Failure;
use clap::Args;
use nuthatch_listen::admin::{Access, AccessRules, Admin, Listeners};
use nuthatch_listen::{Address, MetricsSource};
use nuthatch_telemetry::LogOptions;
use std::path::PathBuf;

/// The problem with an admin endpoint that other machines can reach.
pub(crate) const EXPOSED_ADMIN: &str =
    "this address is reachable by other machines, and the admin endpoint has no login";

/// The arguments for the admin endpoint and for the log.
#[derive(Clone, Debug, Args)]
pub(crate) struct MonitoringArgs {
    /// Address of the admin endpoint (HTTP): host:port or unix:PATH; can be repeated
    ///
    /// The live page at /, Prometheus metrics at /metrics, health at /healthz. No TLS and no
    /// password.
    #[arg(long, value_name = "ADDR", help_heading = "Access")]
    admin: Vec<Address>,
    /// Allow admin addresses that other machines can reach
    #[arg(long, help_heading = "Access")]
    admin_insecure: bool,
    /// Name of the server for browsers at the admin endpoint, beside localhost and addresses; can
    /// be repeated
    #[arg(long, value_name = "NAME", help_heading = "Access", value_parser = parse_host)]
    admin_host: Vec<String>,
    /// A file whose only line is the token that shows private values on the live page; at least 16
    /// bytes
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    admin_token_file: Option<PathBuf>,
    /// What is logged to standard error: a level (error, warn, info, debug, trace or off), or
    /// levels by target, such as `warn,nuthatch::rpc=info`
    #[arg(long, value_name = "FILTER", default_value = "warn", help_heading = "Logs")]
    log: String,
    /// Log one JSON object per line
    #[arg(long, help_heading = "Logs")]
    log_json: bool,
    #[command(flatten)]
    otlp: OtlpArgs,
}

/// The argument for OpenTelemetry.
#[derive(Clone, Debug, Args)]
pub(crate) struct OtlpArgs {
    #[arg(long, value_name = "URL", default_value = logs::OTLP_AUTO, help_heading = "Logs")]
    #[arg(help = OTLP_HELP, long_help = format!("{OTLP_HELP}\n\n{OTLP_DETAILS}"))]
    otlp: String,
}

#[cfg(feature = "delivery")]
impl OtlpArgs {
    /// Starts the log of a command that is no server. Dropping the returned value ends it.
    pub(crate) fn start_logs(&self, service: &str) -> Result<Logs, Failure> {
        let (filter, format) = ("warn", logs::Format::Text);
        logs::start(LogOptions { filter, format, otlp: &self.otlp, service })
    }
}

impl MonitoringArgs {
    /// Starts the log. Dropping the returned value ends it.
    pub(crate) fn start_logs(&self, service: &str) -> Result<Logs, Failure> {
        let format = if self.log_json { logs::Format::Json } else { logs::Format::Text };
        logs::start(LogOptions { filter: &self.log, format, otlp: &self.otlp.otlp, service })
    }

    /// Rejects an address with a problem, and admin endpoints that other machines can reach unless
    /// `insecure` or `--admin-insecure` allows them.
    pub(crate) fn check(&self, problem: Option<String>, insecure: bool) -> Result<(), Failure> {
        if let Some(problem) = problem {
            return Err(Failure::Usage(format!("--listen {problem}; --insecure allows it")));
        }
        let exposed = self.admin.iter().find(|address| !address.is_local());
        match exposed.filter(|_| !insecure && !self.admin_insecure) {
            Some(address) => Err(Failure::Usage(format!(
                "--admin {address}: {EXPOSED_ADMIN}; --admin-insecure allows it"
            ))),
            None => Ok(()),
        }
    }

    /// Opens the admin endpoint of a server, and exports its metrics over OpenTelemetry if that is
    /// on. Dropping the endpoint closes it. Also returns what reads its token again.
    pub(crate) fn open_admin(
        &self,
        source: impl MetricsSource,
        logs: &Logs,
    ) -> Result<(Admin, AdminReloader), Failure> {
        let Self { admin_host: hosts, admin_token_file: token_file, .. } = self.clone();
        let access = Access::default();
        let reloader = AdminReloader { access: access.clone(), hosts, token_file };
        access.replace(reloader.read()?);
        let source = logs.monitor(source, access.exposition());
        let admin = Listeners::bind(&self.admin);
        let admin = admin.and_then(|listeners| Admin::start(listeners, source, access));
        Ok((admin.map_err(|error| start_failure("--admin", &error))?, reloader))
    }
}

/// Reads the file with the token of an admin endpoint again.
#[derive(Debug)]
pub(crate) struct AdminReloader {
    access: Access,
    hosts: Vec<String>,
    token_file: Option<PathBuf>,
}

impl AdminReloader {
    /// Reads the rules of the endpoint. They are not in use before [`Self::apply`].
    pub(crate) fn read(&self) -> Result<AccessRules, Failure> {
        let rules = admin_rules(&self.hosts, self.token_file.as_deref())?;
        if let Some(warning) = self.token_file.as_deref().and_then(world_readable_warning) {
            logs::warn(warning);
        }
        Ok(rules)
    }

    /// Uses rules that were read.
    pub(crate) fn apply(&self, rules: AccessRules) {
        self.access.replace(rules);
    }
}

fn parse_host(name: &str) -> Result<String, String> {
    check_host(name).map(|()| name.to_owned())
}
