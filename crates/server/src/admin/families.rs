//! The metrics of `/metrics`. They have the same sources as `INFO`: the counters of [`Server`].
//!
//! Counters start with the server; `CONFIG RESETSTAT` does not reset them. A test compares them
//! with the table in docs/operations.md.

use crate::cluster::CLUSTER_FIELDS;
use crate::compression::SavedByDictionary;
use crate::report_field::ReportField;
use crate::state::{DISK_FIELDS, SNAPSHOT_FIELDS, Server, SnapshotField, Totals, bucket_end_ns};
use crate::warm_restart::RestoreProgress;
use nuthatch_cache::Stats;
use nuthatch_listen::tls::write_expiry;
use nuthatch_listen::{MetricsFormat, MetricsText, write_process};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Buckets of commands end at powers of two from 128 ns to 8.6 s, those of event-loop iterations
/// from 1 µs.
const COMMAND_BUCKETS: RangeInclusive<u32> = 7..=33;
const ITERATION_BUCKETS: RangeInclusive<u32> = 10..=33;

/// Returns all metrics of a server as text.
pub(super) fn text(server: &Server, format: MetricsFormat) -> String {
    let mut text = MetricsText::new(format);
    let (totals, stats) = (server.totals(), server.cache.stats());
    identity(&mut text, server);
    commands(&mut text, &totals);
    times(&mut text, &totals);
    slow(&mut text, server);
    lookups(&mut text, &stats);
    items(&mut text, &stats);
    restore(&mut text, server);
    disk(&mut text, server);
    snapshots(&mut text, server);
    cluster(&mut text, server, &totals);
    memory(&mut text, server, &stats);
    compression(&mut text, server);
    connections(&mut text, server, &totals);
    event_loop(&mut text, server);
    write_process(&mut text);
    write_expiry(&mut text, &server.certificate_expiry());
    for source in &server.extra_metrics {
        text.append(&source.text());
    }
    text.finish()
}

fn identity(text: &mut MetricsText, server: &Server) {
    text.gauge("nuthatch_uptime_seconds", "How long the server has been running.")
        .sample(&[], server.uptime().as_secs_f64());
}

fn commands(text: &mut MetricsText, totals: &Totals) {
    let help = "Executed requests, including failed ones, by command.";
    let mut calls = text.counter("nuthatch_commands", help);
    for (name, command) in &totals.commands {
        calls.sample(&[("command", name)], command.calls);
    }
    let help = "Executed requests with an error reply, by command.";
    let mut failed = text.counter("nuthatch_commands_failed", help);
    for (name, command) in &totals.commands {
        failed.sample(&[("command", name)], command.failed);
    }
    let help = "Requests that were refused before they were executed, by command.";
    let mut rejected = text.counter("nuthatch_commands_rejected", help);
    for (name, command) in &totals.commands {
        rejected.sample(&[("command", name)], command.rejected);
    }
    let help = "Error replies, by the first word of their text.";
    let mut errors = text.counter("nuthatch_errors", help);
    for (code, count) in &totals.errors {
        errors.sample(&[("code", code)], count);
    }
}

fn times(text: &mut MetricsText, totals: &Totals) {
    let help = "Execution time, by command. Up to 16 commands of one key, with requests and \
                replies up to 4 KiB, are timed together, and each counts an equal share: their \
                sum is exact, and their distribution is one of means. Nothing is counted while \
                latency-tracking is off.";
    let mut durations = text.histogram("nuthatch_command_duration_seconds", help);
    for (name, command) in &totals.commands {
        let labels = [("command", *name)];
        let buckets = buckets(&command.times);
        durations.durations(&labels, buckets, command.tracked_ns, COMMAND_BUCKETS);
    }
}

fn slow(text: &mut MetricsText, server: &Server) {
    let (logged, kept) = server.slow_requests();
    text.counter("nuthatch_slow_requests", "Requests added to the slow log.").sample(&[], logged);
    text.gauge("nuthatch_slowlog_entries", "Requests in the slow log.").sample(&[], kept);
}

fn lookups(text: &mut MetricsText, stats: &Stats) {
    text.counter("nuthatch_hits", "Lookups that found an item.").sample(&[], stats.hits);
    let help = "Failed lookups by cause: unknown or deleted key (absent), expired, or recently \
                evicted key (evicted).";
    text.counter("nuthatch_misses", help)
        .sample(&[("cause", "absent")], stats.misses_absent)
        .sample(&[("cause", "expired")], stats.misses_expired)
        .sample(&[("cause", "evicted")], stats.misses_evicted);
}

fn items(text: &mut MetricsText, stats: &Stats) {
    let help = "Items in the cache, including expired items that are not removed yet.";
    text.gauge("nuthatch_items", help).sample(&[], stats.items);
    text.counter("nuthatch_items_stored", "Items that were stored.").sample(&[], stats.stored);
    text.counter("nuthatch_items_removed", "Items removed by commands, without those of FLUSHALL.")
        .sample(&[], stats.removed);
    let help = "Expired items removed.";
    text.counter("nuthatch_items_expired", help).sample(&[], stats.expired);
    let help = "Items evicted to free memory.";
    text.counter("nuthatch_items_evicted", help).sample(&[], stats.evicted);
    let help = "Bytes that reclamation copied within memory.";
    text.counter("nuthatch_moved_bytes", help).sample(&[], stats.moved_bytes);
    let help = "Times that a write found no free memory and waited for the epoch guards of other \
                threads.";
    text.counter("nuthatch_guard_waits", help).sample(&[], stats.guard_waits);
}

fn restore(text: &mut MetricsText, server: &Server) {
    let RestoreProgress { is_running, items, restored, skipped } = server.restore_progress();
    let help = "1 while items of the last run are restored, otherwise 0.";
    text.gauge("nuthatch_restore_running", help).sample(&[], u64::from(is_running));
    let help = "Items in the dump of the last run, without those of files whose header is damaged.";
    text.gauge("nuthatch_restore_items", help).sample(&[], items);
    text.counter("nuthatch_items_restored", "Items of the last run that were restored.")
        .sample(&[], restored);
    let help = "Items of the last run that were not restored: expired, changed meanwhile, damaged, \
                or beyond the memory.";
    text.counter("nuthatch_items_not_restored", help).sample(&[], skipped);
}

fn disk(text: &mut MetricsText, server: &Server) {
    let Some(report) = server.disk_report() else { return };
    report_fields(text, DISK_FIELDS, &report);
}

/// Adds the fields of a report, which have no labels.
fn report_fields<R, V: Display>(text: &mut MetricsText, fields: &[ReportField<R, V>], report: &R) {
    for ReportField { metric, is_counter, help, value, .. } in fields {
        let mut family =
            if *is_counter { text.counter(metric, help) } else { text.gauge(metric, help) };
        family.sample(&[], value(report));
    }
}

fn snapshots(text: &mut MetricsText, server: &Server) {
    let Some(snapshots) = &server.snapshots else { return };
    let reports = snapshots.reports();
    for SnapshotField { metric, is_counter, help, value } in SNAPSHOT_FIELDS {
        let mut family =
            if *is_counter { text.counter(metric, help) } else { text.gauge(metric, help) };
        for report in &reports {
            family.sample(&[("snapshot", &report.name)], value(report));
        }
    }
}

fn cluster(text: &mut MetricsText, server: &Server, totals: &Totals) {
    let Some(cluster) = &server.cluster else { return };
    let report = cluster.report();
    report_fields(text, CLUSTER_FIELDS, &report);
    let help = "Requests that were refused, by kind: a slot of another node (moved), several slots \
                (crossslot), no lease, or a slot that no node serves (clusterdown).";
    let mut refused = text.counter("nuthatch_cluster_refused_requests", help);
    for (kind, count) in totals.refused_by_cluster() {
        refused.sample(&[("kind", kind)], count);
    }
}

fn memory(text: &mut MetricsText, server: &Server, stats: &Stats) {
    let help = "Memory of the budget in use: segments of items (items), items with segments of \
                their own (large), the index (index), buffers and state of connections \
                (connections), and segment metadata with the ghost queue (other).";
    let mut used = text.gauge("nuthatch_memory_bytes", help);
    for (kind, bytes) in server.memory_kinds(stats).by_name() {
        used.sample(&[("kind", kind)], bytes);
    }
    text.gauge(
        "nuthatch_memory_limit_bytes",
        "The memory budget: the maximum of the sum of all kinds.",
    )
    .sample(&[], stats.memory_limit);
}

fn compression(text: &mut MetricsText, server: &Server) {
    let all = server.compression.saved();
    let id = |one: &SavedByDictionary| one.id.to_string();
    let help = "Values that were compressed, by the id of the dictionary; 0 is none.";
    let mut values = text.counter("nuthatch_compression_values", help);
    for one in &all {
        values.sample(&[("dictionary", &id(one))], one.saved.values);
    }
    let help = "Bytes of these values before compression.";
    let mut raw = text.counter("nuthatch_compression_raw_bytes", help);
    for one in &all {
        raw.sample(&[("dictionary", &id(one))], one.saved.raw_bytes);
    }
    let help = "Bytes of these values after compression.";
    let mut stored = text.counter("nuthatch_compression_stored_bytes", help);
    for one in &all {
        stored.sample(&[("dictionary", &id(one))], one.saved.encoded_bytes);
    }
    let help = "How many times shorter compression made these values.";
    let mut ratio = text.gauge("nuthatch_compression_ratio", help);
    for one in &all {
        ratio.sample(&[("dictionary", &id(one))], one.saved.ratio());
    }
    let help = "Memory of each dictionary.";
    let mut memory = text.gauge("nuthatch_compression_dictionary_bytes", help);
    for one in &all {
        memory.sample(&[("dictionary", &id(one))], one.memory_bytes);
    }
    let help = "Values that compression did not make at least 1/16 shorter, stored as they came.";
    let raw = server.compression.incompressible().values;
    text.counter("nuthatch_compression_incompressible_values", help).sample(&[], raw);
    let help = "Dictionaries of earlier runs that could not be loaded.";
    let lost = server.compression.lost_dictionaries();
    text.gauge("nuthatch_compression_dictionaries_lost", help).sample(&[], lost);
    let help = "New dictionaries that were not adopted: the limit was reached, or saving failed.";
    let refused = server.compression.refused_dictionaries();
    text.counter("nuthatch_compression_dictionaries_refused", help).sample(&[], refused);
}

fn connections(text: &mut MetricsText, server: &Server, totals: &Totals) {
    text.gauge("nuthatch_connections", "Connections that are open.")
        .sample(&[], server.clients.len());
    text.gauge("nuthatch_connections_limit", "Maximum number of connections: maxclients.")
        .sample(&[], server.settings.max_clients());
    text.counter("nuthatch_connections_accepted", "Connections that were accepted.")
        .sample(&[], totals.connections);
    let help = "Connections refused because maxclients was reached.";
    text.counter("nuthatch_connections_refused", help).sample(&[], server.clients.refused());
    let help = "Connections closed because an HTTP request arrived on a port of the cache.";
    text.counter("nuthatch_http_requests_refused", help).sample(&[], server.clients.http_refused());
    let help = "Connections closed by CLIENT KILL.";
    text.counter("nuthatch_connections_killed", help).sample(&[], server.clients.kills());
    let help = "Connections closed because the client did not read its replies: a \
                client-output limit was exceeded, or a write needed the memory.";
    text.counter("nuthatch_connections_output_closed", help)
        .sample(&[], server.clients.output_closed());
    let help = "Times a client was paused because its unsent replies reached the output limit.";
    text.counter("nuthatch_output_limit_hits", help).sample(&[], totals.output_limits);
    text.counter("nuthatch_received_bytes", "Bytes received from clients.")
        .sample(&[], totals.received);
    text.counter("nuthatch_sent_bytes", "Bytes sent to clients.").sample(&[], totals.sent);
}

fn event_loop(text: &mut MetricsText, server: &Server) {
    let help = "Duration of an iteration of the event loop, which is the longest time that input \
                waits for the thread. The rate of the sum is the part of its time that the \
                thread is busy.";
    let mut iterations = text.histogram("nuthatch_event_loop_lag_seconds", help);
    for (number, thread) in server.iterations().into_iter().enumerate() {
        let number = number.to_string();
        let buckets = buckets(&thread.times);
        iterations.durations(&[("thread", &number)], buckets, thread.ns, ITERATION_BUCKETS);
    }
}

/// Returns the end of each bucket in nanoseconds, and its count.
fn buckets(counts: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    counts.iter().enumerate().map(|(bucket, count)| (bucket_end_ns(bucket), *count))
}
