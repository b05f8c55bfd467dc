//! The arguments for the log.

use super::Failure;
use clap::Args;
use nuthatch_telemetry::{Error, Format, LogOptions, Logs, OTLP_AUTO};

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
    /// Collector for OpenTelemetry (OTLP over HTTP), such as <http://127.0.0.1:4318>; auto or off
    ///
    /// With auto, the address is `OTEL_EXPORTER_OTLP_ENDPOINT`, and nothing is exported without it.
    /// Needs a program that was built with the feature `otlp`.
    #[arg(long, value_name = "URL", default_value = OTLP_AUTO, help_heading = "Logs")]
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
