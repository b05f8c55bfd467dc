//! The log of Nuthatch's programs, and their logs, metrics and traces over OpenTelemetry.
//!
//! | module | content |
//! |---|---|
//! | `log` | the log on standard error, and its filter |
//! | `monitored` | a source of metrics together with the counters of the exporter |
//! | `otlp` | the exporter, with the feature `otlp`; otherwise `otlp_absent.rs`, which refuses it |
//!
//! [`start`] starts the log, and the exporter if the setting or the environment has an address.

mod log;
mod monitored;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "otlp_absent.rs"]
mod otlp;

pub use log::{Format, LogFilter, LogOptions, Logs, check_filter, server_started, start, warn};
pub use monitored::Monitored;
pub use otlp::check as check_otlp;

/// The value of the setting `otlp` that reads the address from the environment.
pub const OTLP_AUTO: &str = "auto";

/// What the setting `otlp` is, for help pages, in one line.
pub const OTLP_HELP: &str =
    "Collector for OpenTelemetry (OTLP over HTTP), such as http://127.0.0.1:4318; auto or off";

/// More about the setting `otlp`, for help pages.
pub const OTLP_DETAILS: &str = "Exports logs, metrics and traces. With auto, the address is \
                                OTEL_EXPORTER_OTLP_ENDPOINT, and nothing is exported without it. \
                                Needs a program that was built with the feature `otlp` \
                                (docs/operations.md, \"OpenTelemetry\").";

/// The value of the setting `otlp` that exports nothing.
pub const OTLP_OFF: &str = "off";

/// The variable with the address of a collector.
const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The error of the log's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A setting or a variable is invalid.
    Setting(String),
    /// A thread cannot be started, or there is a log already.
    System(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Setting(text) | Self::System(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Error {}

/// Returns the value of a variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
