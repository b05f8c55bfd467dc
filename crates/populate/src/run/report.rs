//! The report of a run.

use crate::gate_report::GateReport;
use nuthatch_snapshot::Summary;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// What a run did.
#[derive(Clone, Debug)]
pub struct Report {
    /// The path of the snapshot.
    pub output: PathBuf,
    /// Whether changed rows were merged with the last generation.
    pub is_incremental: bool,
    /// The counts of the build.
    pub summary: Summary,
    /// The sources, in order.
    pub sources: Vec<SourceReport>,
    /// The gates, all passed.
    pub gates: Vec<GateReport>,
    /// The publication, if the job has one.
    pub published: Option<nuthatch_delivery::Published>,
    /// Number of attempts.
    pub attempts: u32,
    /// The time of all attempts.
    pub time: Duration,
}

/// What was read of a source.
#[derive(Clone, Debug)]
pub struct SourceReport {
    /// The address, without secrets.
    pub source: String,
    /// Rows read.
    pub rows: u64,
    /// Entries made of them.
    pub entries: u64,
    /// The time of reading.
    pub time: Duration,
}

impl Report {
    /// Returns the report as a JSON object.
    pub fn json(&self) -> Value {
        let sources: Vec<_> = self
            .sources
            .iter()
            .map(|source| {
                json!({
                    "source": source.source,
                    "rows": source.rows,
                    "entries": source.entries,
                    "seconds": seconds(source.time),
                })
            })
            .collect();
        let gates: Vec<_> = self.gates.iter().map(GateReport::json).collect();
        let published = self.published.as_ref().map(|published| {
            json!({
                "generation": published.generation,
                "unchanged": published.is_unchanged,
                "bytes": published.bytes,
                "uploaded_bytes": published.uploaded_bytes,
                "delta_bytes": published.delta_bytes,
                "delta_failures": published.delta_failures,
                "unread_objects": published.unread_objects,
            })
        });
        json!({
            "output": self.output.display().to_string(),
            "incremental": self.is_incremental,
            "entries": self.summary.entries,
            "bytes": self.summary.file_len,
            "sources": sources,
            "gates": gates,
            "published": published,
            "attempts": self.attempts,
            "seconds": seconds(self.time),
        })
    }
}

/// Returns seconds with three decimals.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}
