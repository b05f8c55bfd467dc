//! Without the feature `otlp`: the setting is refused unless it exports nothing.

use crate::{ENDPOINT_VARIABLE, Error, OTLP_AUTO, OTLP_OFF, variable, warn};
use nuthatch_listen::MetricsSource;
use std::io;
use std::sync::Arc;
use tracing::Dispatch;
use tracing_subscriber::{Layer, Registry};

/// Why an address is refused, and what to do.
const ABSENT: &str = "this program was built without OpenTelemetry; build it with \
                      \"cargo build --release --features otlp\"";

/// The exporter. There is none without the feature.
pub(crate) enum Otlp {}

/// Checks a value of the setting: auto, off, or the URL of a collector.
///
/// # Errors
///
/// Returns the problem.
pub fn check(text: &str) -> Result<(), String> {
    match text {
        OTLP_AUTO | OTLP_OFF => Ok(()),
        _ => Err(format!("expected off or auto, found an address: {ABSENT}")),
    }
}

impl Otlp {
    pub(crate) fn new(setting: &str, _service: &str) -> Result<Option<Self>, Error> {
        check(setting).map_err(|problem| Error::Setting(format!("--otlp: {problem}")))?;
        Ok(None)
    }

    /// Warns if the environment has the address of a collector.
    pub(crate) fn warn_if_unused(setting: &str) {
        if setting == OTLP_AUTO && variable(ENDPOINT_VARIABLE).is_some() {
            warn(format_args!("{ENDPOINT_VARIABLE} is set, but {ABSENT}, or use --otlp off"));
        }
    }

    pub(crate) fn warnings(&self) -> &[String] {
        match *self {}
    }

    pub(crate) fn logs(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        match *self {}
    }

    pub(crate) fn spans(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        match *self {}
    }

    pub(crate) fn start(&mut self, _: &Dispatch) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn export_metrics(&self, _: Arc<dyn MetricsSource>) {
        match *self {}
    }

    pub(crate) fn exposition(&self) -> Box<dyn Fn() -> String + Send + Sync> {
        match *self {}
    }

    pub(crate) fn stop(self) {
        match self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_refused_and_not_repeated() {
        assert!(check("off").is_ok() && check("auto").is_ok());
        let problem = check("http://user:secret@collector:4318").expect_err("no feature");
        assert!(problem.contains("--features otlp"), "{problem}");
        assert!(!problem.contains("secret"), "{problem}");
    }
}
