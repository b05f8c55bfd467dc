//! The arguments for the log.

use super::Failure;
use clap::Args;
use nuthatch_telemetry::{Error, Format, LogOptions, Logs, OTLP_AUTO, OTLP_DETAILS, OTLP_HELP};

/// The arguments for the log and for OpenTelemetry.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// What is logged to standard error: a level (error, warn, info, debug, trace or off), or
    /// levels by target, such as `warn,nuthatch::populate=info`
    #[arg(long, value_name = "FILTER", default_value = "warn", help_heading = "Logs")]
    log: String,
    /// Log one JSON object per line
    #[arg(long, help_heading = "Logs")]
    pub(super) log_json: bool,
    #[arg(long, value_name = "URL", default_value = OTLP_AUTO, help_heading = "Logs")]
    #[arg(help = OTLP_HELP, long_help = format!("{OTLP_HELP}\n\n{OTLP_DETAILS}"))]
    otlp: String,
}

impl LogArgs {
    /// Starts the log. Dropping the returned value ends it.
    pub(super) fn start(&self) -> Result<Logs, Failure> {
        let format = if self.log_json { Format::Json } else { Format::Text };
        let (filter, otlp, service) = (&*self.log, &*self.otlp, "nuthatch-populate");
        let started = nuthatch_telemetry::start(LogOptions { filter, format, otlp, service });
        started.map_err(|error| match error {
            Error::Setting(problem) => Failure::Usage(problem),
            Error::System(problem) => Failure::Job(nuthatch_populate::Error::System(problem)),
        })
    }
}
