//! What a server reports to the admin endpoint.

use crate::exposition::MetricsFormat;
use crate::live_report::LiveReport;

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

    /// Returns what the live page shows beside the metrics. The endpoint calls it at most twice a
    /// second, and only while a client reads it.
    fn live(&self) -> LiveReport {
        LiveReport::default()
    }
}
