//! The log of this program. The package `nuthatch-telemetry` writes it.

use crate::outcome::Failure;
use nuthatch_telemetry::{Error, LogOptions};

pub(crate) use nuthatch_telemetry::{
    Format, LogFilter, Logs, OTLP_AUTO, OTLP_DETAILS, OTLP_HELP, check_filter, check_otlp,
    server_started, warn,
};

/// Starts the log. Dropping the returned value ends it.
pub(crate) fn start(options: LogOptions<'_>) -> Result<Logs, Failure> {
    nuthatch_telemetry::start(options).map_err(|error| match error {
        Error::Setting(problem) => Failure::Usage(problem),
        Error::System(problem) => Failure::Error(problem),
    })
}
