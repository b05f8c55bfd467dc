//! What a server reports to the admin endpoint.

use crate::exposition::MetricsFormat;

/// A server with metrics and health. The admin endpoint calls it on its own thread.
pub trait MetricsSource: Send + Sync + 'static {
    /// Returns the metrics in this format.
    fn metrics(&self, format: MetricsFormat) -> String;

    /// Returns whether the server is stopping, and so is unhealthy.
    fn is_stopping(&self) -> bool;

    /// Returns why the server is unhealthy although it is not stopping, as one line.
    fn problem(&self) -> Option<String> {
        None
    }
}
