//! The metrics of `/metrics`. They have the same sources as `INFO`: the counters of [`Server`].
//!
//! Counters start with the server; `CONFIG RESETSTAT` does not reset them. A test compares them
//! with the table in docs/operations.md.

use super::exposition::{Format, Page};
use super::process;
use crate::state::{Server, Totals};
use nuthatch_cache::Stats;

/// Buckets of commands end at powers of two from 128 ns to 8.6 s, those of event-loop iterations
/// from 1 µs.
const COMMAND_BUCKETS: std::ops::RangeInclusive<u32> = 7..=33;
const ITERATION_BUCKETS: std::ops::RangeInclusive<u32> = 10..=33;

/// Returns all metrics of a server as text.
pub(super) fn page(server: &Server, format: Format) -> String {
    let mut page = Page::new(format);
    let (totals, stats) = (server.totals(), server.cache.stats());
    identity(&mut page, server);
    commands(&mut page, &totals);
    times(&mut page, &totals);
    slow(&mut page, server);
    lookups(&mut page, &stats);
    items(&mut page, &stats);
    memory(&mut page, server, &stats);
    connections(&mut page, server, &totals);
    event_loop(&mut page, server);
    process::tell(&mut page);
    for source in &server.extra_metrics {
        page.append(&source.text());
    }
    page.finish()
}

fn identity(page: &mut Page, server: &Server) {
    let version = env!("CARGO_PKG_VERSION");
    page.gauge("nuthatch_build_info", "Always 1, with the version of the server.")
        .sample(&[("version", version)], 1);
    page.gauge("nuthatch_uptime_seconds", "How long the server has been running.")
        .sample(&[], server.uptime().as_secs_f64());
}

fn commands(page: &mut Page, totals: &Totals) {
    let help = "Requests that were executed, failed ones among them, by command.";
    let mut calls = page.counter("nuthatch_commands", help);
    for (name, command) in &totals.commands {
        calls.sample(&[("command", name)], command.calls);
    }
    let help = "Requests that were executed and answered with an error, by command.";
    let mut failed = page.counter("nuthatch_commands_failed", help);
    for (name, command) in &totals.commands {
        failed.sample(&[("command", name)], command.failed);
    }
    let help = "Requests that were refused before they were executed, by command.";
    let mut rejected = page.counter("nuthatch_commands_rejected", help);
    for (name, command) in &totals.commands {
        rejected.sample(&[("command", name)], command.rejected);
    }
    let help = "Answers that are errors, by the first word of their text.";
    let mut errors = page.counter("nuthatch_errors", help);
    for (code, count) in &totals.errors {
        errors.sample(&[("code", code)], count);
    }
}

fn times(page: &mut Page, totals: &Totals) {
    let help = "How long executing took, by command. Commands over one key, with requests and \
                replies up to 4 KiB, are timed up to 16 at a time, and each is given an equal \
                share: their sum is exact, and their distribution one of means. Nothing is \
                counted while latency-tracking is off.";
    let mut durations = page.histogram("nuthatch_command_duration_seconds", help);
    for (name, command) in &totals.commands {
        let labels = [("command", *name)];
        durations.times(&labels, &command.times, command.tracked_ns, COMMAND_BUCKETS);
    }
}

fn slow(page: &mut Page, server: &Server) {
    let (logged, kept) = server.slow_requests();
    page.counter("nuthatch_slow_requests", "Requests that went to the slow log.")
        .sample(&[], logged);
    page.gauge("nuthatch_slowlog_entries", "Requests in the slow log.").sample(&[], kept);
}

fn lookups(page: &mut Page, stats: &Stats) {
    page.counter("nuthatch_hits", "Lookups that found an item.").sample(&[], stats.hits);
    let help = "Failed lookups by cause: unknown or deleted key (absent), expired, or recently \
                evicted key (evicted).";
    page.counter("nuthatch_misses", help)
        .sample(&[("cause", "absent")], stats.misses_absent)
        .sample(&[("cause", "expired")], stats.misses_expired)
        .sample(&[("cause", "evicted")], stats.misses_evicted);
}

fn items(page: &mut Page, stats: &Stats) {
    let help = "Items in the cache, with expired items that were not removed yet.";
    page.gauge("nuthatch_items", help).sample(&[], stats.items);
    page.counter("nuthatch_items_stored", "Items that were stored.").sample(&[], stats.stored);
    page.counter("nuthatch_items_removed", "Items that were removed on demand.")
        .sample(&[], stats.removed);
    let help = "Expired items removed.";
    page.counter("nuthatch_items_expired", help).sample(&[], stats.expired);
    let help = "Items that were evicted to make room.";
    page.counter("nuthatch_items_evicted", help).sample(&[], stats.evicted);
    let help = "Bytes that were copied within memory to make room.";
    page.counter("nuthatch_moved_bytes", help).sample(&[], stats.moved_bytes);
    let help = "Writes that found no free memory and waited for the epoch guards of other threads.";
    page.counter("nuthatch_guard_waits", help).sample(&[], stats.guard_waits);
}

fn memory(page: &mut Page, server: &Server, stats: &Stats) {
    let help = "Memory of the budget in use: segments of items (items), items with segments of \
                their own (large), the index (index), buffers and state of connections \
                (connections), and what is known of segments and of evicted keys (other).";
    let mut used = page.gauge("nuthatch_memory_bytes", help);
    for (kind, bytes) in server.memory_kinds(stats).by_name() {
        used.sample(&[("kind", kind)], bytes);
    }
    page.gauge("nuthatch_memory_limit_bytes", "The budget, for all kinds together.")
        .sample(&[], stats.memory_limit);
}

fn connections(page: &mut Page, server: &Server, totals: &Totals) {
    page.gauge("nuthatch_connections", "Connections that are open.")
        .sample(&[], server.clients.len());
    page.gauge("nuthatch_connections_limit", "Maximum number of connections: maxclients.")
        .sample(&[], server.settings.max_clients());
    page.counter("nuthatch_connections_accepted", "Connections that were accepted.")
        .sample(&[], totals.connections);
    let help = "Connections refused because maxclients was reached.";
    page.counter("nuthatch_connections_refused", help).sample(&[], server.clients.refused());
    let help = "Connections closed because an HTTP request arrived on a port of the cache.";
    page.counter("nuthatch_http_requests_refused", help).sample(&[], server.clients.http_refused());
    let help = "Connections closed by CLIENT KILL.";
    page.counter("nuthatch_connections_killed", help).sample(&[], server.clients.kills());
    let help = "Connections closed because the client did not read its replies: a \
                client-output limit was exceeded, or a write needed the memory.";
    page.counter("nuthatch_connections_output_closed", help)
        .sample(&[], server.clients.output_closed());
    let help = "Times a client was paused because its unsent replies reached the output limit.";
    page.counter("nuthatch_output_limit_hits", help).sample(&[], totals.output_limits);
    page.counter("nuthatch_received_bytes", "Bytes received from clients.")
        .sample(&[], totals.received);
    page.counter("nuthatch_sent_bytes", "Bytes sent to clients.").sample(&[], totals.sent);
}

fn event_loop(page: &mut Page, server: &Server) {
    let help = "Event-loop lag: how long a thread was busy each time it was woken, until it \
                waited again. What arrived meanwhile waited for it at most so long. The rate of \
                the sum is the part of its time that a thread is busy.";
    let mut iterations = page.histogram("nuthatch_event_loop_lag_seconds", help);
    for (number, thread) in server.iterations().into_iter().enumerate() {
        let number = number.to_string();
        iterations.times(&[("thread", &number)], &thread.times, thread.ns, ITERATION_BUCKETS);
    }
}
