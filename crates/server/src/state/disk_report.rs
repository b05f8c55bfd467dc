//! What `INFO` and `/metrics` report about the disk tier.

use super::server::Server;
use crate::report_field::{ReportField, counter, gauge};
use nuthatch_cache::Stats;
use nuthatch_tiered::DiskStats;

/// The statistics of the cache and of its disk tier.
pub(crate) struct DiskReport {
    cache: Stats,
    disk: DiskStats,
}

/// All fields.
pub(crate) const DISK_FIELDS: &[ReportField<DiskReport, u64>] = &[
    gauge(("disk_bytes", "nuthatch_disk_bytes"), "Bytes of all files on disk.", |r| r.disk.bytes),
    gauge(
        ("disk_limit_bytes", "nuthatch_disk_limit_bytes"),
        "The maximum of these bytes: --disk.",
        |r| r.disk.max_bytes,
    ),
    gauge(("disk_files", "nuthatch_disk_files"), "Item files on disk.", |r| r.disk.files),
    gauge(("disk_items", "nuthatch_disk_items"), "Items whose only copy is on disk.", |r| {
        r.cache.items_on_disk
    }),
    counter(
        ("disk_hits", "nuthatch_disk_hits"),
        "Items that were read from disk for a request.",
        |r| r.disk.hits,
    ),
    counter(("disk_reads", "nuthatch_disk_reads"), "Reads from disk.", |r| r.disk.reads),
    counter(("disk_read_bytes", "nuthatch_disk_read_bytes"), "Bytes read from disk.", |r| {
        r.disk.read_bytes
    }),
    gauge(
        ("disk_queued_reads", "nuthatch_disk_queued_reads"),
        "Reads that wait or are in progress.",
        |r| r.disk.queued_reads,
    ),
    counter(
        ("disk_written_items", "nuthatch_disk_written_items"),
        "Items that were written to disk.",
        |r| r.disk.written,
    ),
    counter(
        ("disk_written_bytes", "nuthatch_disk_written_bytes"),
        "Bytes that were written to item files.",
        |r| r.disk.written_bytes,
    ),
    counter(
        ("disk_unchanged_items", "nuthatch_disk_unchanged_items"),
        "Items that left memory and were not written again, since they were on disk unchanged.",
        |r| r.cache.demoted_unchanged,
    ),
    counter(
        ("disk_dropped_items", "nuthatch_disk_dropped_items"),
        "Items that left memory unwritten, since the disk was too slow, failed, or has no room.",
        |r| r.cache.evicted,
    ),
    counter(
        ("disk_removed_items", "nuthatch_disk_removed_items"),
        "Items that were removed with the oldest item file, to make room on disk.",
        |r| r.disk.removed_for_room,
    ),
    counter(
        ("disk_bad_records", "nuthatch_disk_bad_records"),
        "Records that could not be read or were damaged. Their items are lost.",
        |r| r.disk.bad_records,
    ),
    gauge(
        ("disk_lost_items", "nuthatch_disk_lost_items"),
        "Items of the last run that were removed since the removal log was damaged.",
        |r| r.disk.lost,
    ),
    counter(
        ("disk_undecodable_records", "nuthatch_disk_undecodable_records"),
        "Records whose compressed value needs an unknown dictionary. Their items are lost.",
        |r| r.disk.undecodable,
    ),
    counter(
        ("disk_false_matches", "nuthatch_disk_false_matches"),
        "Reads for a key that found the record of another one, whose hash is similar.",
        |r| r.disk.false_matches,
    ),
    gauge(
        ("disk_recovering", "nuthatch_disk_recovering"),
        "1 while the items of the last run are being recovered, otherwise 0.",
        |r| u64::from(r.disk.is_recovering),
    ),
    gauge(
        ("disk_records_to_recover", "nuthatch_disk_records_to_recover"),
        "Records of the last run, those that are out of date or expired included.",
        |r| r.disk.to_recover,
    ),
    counter(
        ("disk_recovered_items", "nuthatch_disk_recovered_items"),
        "Items of the last run that were recovered.",
        |r| r.disk.recovered,
    ),
    gauge(
        ("disk_off", "nuthatch_disk_off"),
        "1 if nothing is written to disk any more because of an error, otherwise 0.",
        |r| u64::from(r.disk.is_off),
    ),
];

impl DiskReport {
    /// Returns the bytes written for each byte of keys and values; 0 if none were written.
    pub(crate) fn write_amplification(&self) -> f64 {
        ratio(self.disk.written_bytes, self.disk.written_item_bytes)
    }

    /// Returns the reads for each item that was read.
    pub(crate) fn reads_per_hit(&self) -> f64 {
        ratio(self.disk.reads, self.disk.hits)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Server {
    /// Returns the report about the disk tier; `None` without one.
    pub(crate) fn disk_report(&self) -> Option<DiskReport> {
        let disk = self.disk.as_ref()?.stats();
        Some(DiskReport { cache: self.cache.stats(), disk })
    }
}
