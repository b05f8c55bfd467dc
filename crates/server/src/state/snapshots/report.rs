//! What `INFO` and the metrics report of snapshots.

use super::routes::Snapshots;
use std::path::PathBuf;

/// The state and the counters of one snapshot.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotReport {
    pub(crate) name: String,
    pub(crate) prefix: Vec<u8>,
    pub(crate) path: PathBuf,
    pub(crate) entries: u64,
    /// The length of its files in bytes.
    pub(crate) bytes: u64,
    /// Seconds since the current generation was opened.
    pub(crate) age_seconds: f64,
    /// New generations that replaced the one before.
    pub(crate) switches: u64,
    /// New generations that were rejected.
    pub(crate) rejected: u64,
    /// Why the newest generation does not serve, if so.
    pub(crate) error: Option<String>,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Lookups that met damage.
    pub(crate) errors: u64,
    pub(crate) refused_writes: u64,
}

/// A metric of each snapshot.
pub(crate) struct SnapshotField {
    pub(crate) metric: &'static str,
    pub(crate) is_counter: bool,
    pub(crate) help: &'static str,
    pub(crate) value: fn(&SnapshotReport) -> f64,
}

const fn gauge(
    metric: &'static str,
    help: &'static str,
    value: fn(&SnapshotReport) -> f64,
) -> SnapshotField {
    SnapshotField { metric, is_counter: false, help, value }
}

const fn counter(
    metric: &'static str,
    help: &'static str,
    value: fn(&SnapshotReport) -> f64,
) -> SnapshotField {
    SnapshotField { metric, is_counter: true, help, value }
}

/// The metrics of each snapshot.
pub(crate) const SNAPSHOT_FIELDS: &[SnapshotField] = &[
    gauge("nuthatch_snapshot_entries", "Entries of the snapshot.", |it| it.entries as f64),
    gauge("nuthatch_snapshot_bytes", "Bytes of the files of the snapshot.", |it| it.bytes as f64),
    gauge(
        "nuthatch_snapshot_age_seconds",
        "Time since the generation that serves was opened.",
        |it| it.age_seconds,
    ),
    gauge(
        "nuthatch_snapshot_outdated",
        "1 while the newest generation cannot be used and an older one serves, otherwise 0.",
        |it| f64::from(u8::from(it.error.is_some())),
    ),
    counter("nuthatch_snapshot_switches", "New generations that replaced the one before.", |it| {
        it.switches as f64
    }),
    counter(
        "nuthatch_snapshot_rejected",
        "New generations that were rejected: missing, damaged or too large for the memory.",
        |it| it.rejected as f64,
    ),
    counter("nuthatch_snapshot_hits", "Lookups that found a key.", |it| it.hits as f64),
    counter("nuthatch_snapshot_misses", "Lookups of missing keys.", |it| it.misses as f64),
    counter(
        "nuthatch_snapshot_read_errors",
        "Lookups and scans that met damage in the file.",
        |it| it.errors as f64,
    ),
    counter(
        "nuthatch_snapshot_refused_writes",
        "Refused requests that would have written to a key of the snapshot.",
        |it| it.refused_writes as f64,
    ),
];

impl Snapshots {
    /// Returns the state and the counters of each snapshot, in the order of their names.
    pub(crate) fn reports(&self) -> Vec<SnapshotReport> {
        let reports = self.served.iter().map(|served| {
            let status = served.watch.status();
            let reader = served.watch.reader();
            let snapshot = reader.last();
            SnapshotReport {
                name: served.source.name.clone(),
                prefix: served.source.prefix.clone(),
                path: served.source.path.clone(),
                entries: snapshot.len(),
                bytes: snapshot.stats().file_len,
                age_seconds: served.switching.age_seconds(),
                switches: status.switched,
                rejected: status.rejected,
                error: status.error.or(status.panic),
                hits: served.sum(|counts| &counts.hits),
                misses: served.sum(|counts| &counts.misses),
                errors: served.sum(|counts| &counts.errors),
                refused_writes: served.sum(|counts| &counts.refused_writes),
            }
        });
        let mut reports: Vec<_> = reports.collect();
        reports.sort_by(|one, other| one.name.cmp(&other.name));
        reports
    }
}
