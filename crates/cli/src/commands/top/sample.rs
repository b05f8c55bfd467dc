//! The counters of a server at one moment.

use super::cluster::ClusterNode;
use super::disk::Disk;
use super::exposition::{Histogram, Metrics};
use super::report::Report;
use std::collections::BTreeMap;

/// The counters of a server. They only grow while it runs, except gauges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(super) version: String,
    pub(super) uptime_s: f64,
    pub(super) commands: BTreeMap<String, Command>,
    pub(super) hits: f64,
    pub(super) misses: Vec<(String, f64)>,
    /// A gauge.
    pub(super) items: f64,
    pub(super) stored: f64,
    pub(super) removed: f64,
    pub(super) expired: f64,
    pub(super) evicted: f64,
    pub(super) slow: f64,
    /// Bytes by kind; gauges.
    pub(super) memory: Vec<(String, f64)>,
    pub(super) memory_limit: f64,
    /// Values that were compressed, by dictionary.
    pub(super) compressed: BTreeMap<String, Compressed>,
    /// `None` without a disk tier.
    pub(super) disk: Option<Disk>,
    /// `None` without a cluster.
    pub(super) cluster: Option<ClusterNode>,
    /// A gauge.
    pub(super) connections: f64,
    pub(super) connections_limit: f64,
    pub(super) accepted: f64,
    pub(super) refused: f64,
    pub(super) output_limits: f64,
    pub(super) received: f64,
    pub(super) sent: f64,
    /// The duration of event-loop iterations by thread.
    pub(super) event_loop_lag: BTreeMap<String, Histogram>,
    pub(super) cpu_s: f64,
    /// A gauge.
    pub(super) resident: f64,
    /// What the server reports beside its metrics.
    pub(super) report: Report,
    /// Why private values are hidden in spite of a token.
    pub(super) token_problem: Option<String>,
}

/// Bytes of values that were compressed, before and after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compressed {
    pub(super) raw: f64,
    pub(super) stored: f64,
}

/// The counters of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Command {
    pub(super) calls: f64,
    /// Failed and rejected calls.
    pub(super) errors: f64,
    pub(super) times: Histogram,
}

impl Sample {
    /// Parses the text of `/metrics`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let points = Metrics::parse(text)?;
        let uptime = "nuthatch_uptime_seconds";
        let missing = || format!("GET /metrics: expected {uptime} of a cache server, found none");
        let uptime_s = points.value(uptime).ok_or_else(missing)?;
        let value = |name: &str| points.value(name).unwrap_or(0.0);
        let by = |name: &str, label: &str| {
            let owned = |(label, value): (&str, f64)| (label.to_owned(), value);
            points.by(name, label).map(owned).collect()
        };
        let version = points.label("nuthatch_build_info", "version").unwrap_or_default();
        Ok(Self {
            version: version.to_owned(),
            uptime_s,
            commands: commands(&points),
            hits: value("nuthatch_hits_total"),
            misses: by("nuthatch_misses_total", "cause"),
            items: value("nuthatch_items"),
            stored: value("nuthatch_items_stored_total"),
            removed: value("nuthatch_items_removed_total"),
            expired: value("nuthatch_items_expired_total"),
            evicted: value("nuthatch_items_evicted_total"),
            slow: value("nuthatch_slow_requests_total"),
            memory: by("nuthatch_memory_bytes", "kind"),
            memory_limit: value("nuthatch_memory_limit_bytes"),
            compressed: compressed(&points),
            disk: Disk::of(&points),
            cluster: ClusterNode::of(&points),
            connections: value("nuthatch_connections"),
            connections_limit: value("nuthatch_connections_limit"),
            accepted: value("nuthatch_connections_accepted_total"),
            refused: value("nuthatch_connections_refused_total"),
            output_limits: value("nuthatch_output_limit_hits_total"),
            received: value("nuthatch_received_bytes_total"),
            sent: value("nuthatch_sent_bytes_total"),
            event_loop_lag: points.histograms_by("nuthatch_event_loop_lag_seconds", "thread"),
            cpu_s: value("process_cpu_seconds_total"),
            resident: value("process_resident_memory_bytes"),
            report: Report::default(),
            token_problem: None,
        })
    }
}

fn compressed(points: &Metrics) -> BTreeMap<String, Compressed> {
    let mut compressed: BTreeMap<String, Compressed> = BTreeMap::new();
    for (id, bytes) in points.by("nuthatch_compression_raw_bytes_total", "dictionary") {
        compressed.entry(id.to_owned()).or_default().raw = bytes;
    }
    for (id, bytes) in points.by("nuthatch_compression_stored_bytes_total", "dictionary") {
        compressed.entry(id.to_owned()).or_default().stored = bytes;
    }
    compressed.retain(|_, one| one.stored > 0.0);
    compressed
}

fn commands(points: &Metrics) -> BTreeMap<String, Command> {
    let mut commands: BTreeMap<String, Command> = BTreeMap::new();
    for (name, calls) in points.by("nuthatch_commands_total", "command") {
        commands.entry(name.to_owned()).or_default().calls = calls;
    }
    for metric in ["nuthatch_commands_failed_total", "nuthatch_commands_rejected_total"] {
        for (name, errors) in points.by(metric, "command") {
            commands.entry(name.to_owned()).or_default().errors += errors;
        }
    }
    for (name, times) in points.histograms_by("nuthatch_command_duration_seconds", "command") {
        commands.entry(name).or_default().times = times;
    }
    commands
}
