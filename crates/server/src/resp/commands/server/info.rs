//! `INFO`: statistics and state of the server.

use crate::cluster::CLUSTER_FIELDS;
use crate::compression::{Saved, SavedByDictionary};
use crate::resp::commands::connection::hello::COMPATIBLE_VERSION;
use crate::resp::commands::{Call, Result};
use crate::state::histogram::quantile_ns;
use crate::state::{DISK_FIELDS, Server, SnapshotReport};
use nuthatch_cache::Guard;
use nuthatch_listen::Process;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// A section, and whether it is included by default.
type Section = (&'static str, bool, fn(&Server, &mut String, &Guard<'_>));

const SECTIONS: &[Section] = &[
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory),
    ("Persistence", true, persistence),
    ("Disk", true, disk),
    ("Snapshots", true, snapshots),
    ("Stats", true, stats),
    ("Compression", true, compression),
    ("CPU", true, cpu),
    ("Replication", true, replication),
    ("Commandstats", false, command_stats),
    ("Errorstats", true, error_stats),
    ("Latencystats", false, latency_stats),
    ("Cluster", true, cluster),
    ("Keyspace", true, keyspace),
];

/// `INFO [section...]`
pub(crate) fn info(call: &mut Call<'_>) -> Result {
    let requested: Vec<_> = call.args.from(1).map(<[u8]>::to_ascii_lowercase).collect();
    let has = |name: &str| requested.iter().any(|one| one == name.as_bytes());
    let (every, usual) = (has("all") || has("everything"), requested.is_empty() || has("default"));
    let mut text = String::new();
    for (name, shown, write) in SECTIONS {
        if every || (usual && *shown) || has(&name.to_ascii_lowercase()) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            line(&mut text, format_args!("# {name}"));
            write(call.server, &mut text, call.guard);
        }
    }
    call.reply().verbatim(text.as_bytes());
    Ok(())
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a `String` never fails.
    let _ = text.write_fmt(content);
    text.push_str("\r\n");
}

fn lines<const LEN: usize>(text: &mut String, fields: [(&str, String); LEN]) {
    for (name, value) in fields {
        line(text, format_args!("{name}:{value}"));
    }
}

fn number(number: u64) -> String {
    number.to_string()
}

/// Formats bytes as Redis does.
fn human(bytes: u64) -> String {
    let units = ["K", "M", "G", "T"];
    let mut scaled = bytes as f64 / 1024.0;
    for unit in units {
        if scaled < 1024.0 && bytes >= 1024 {
            return format!("{scaled:.2}{unit}");
        }
        scaled /= 1024.0;
    }
    format!("{bytes}B")
}

fn server(server: &Server, text: &mut String, guard: &Guard<'_>) {
    let now_ms = guard.now_ms();
    let uptime = server.started.elapsed().as_secs();
    lines(
        text,
        [
            ("redis_version", COMPATIBLE_VERSION.to_owned()),
            ("nuthatch_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("redis_mode", server.mode().to_owned()),
            ("os", std::env::consts::OS.to_owned()),
            ("multiplexing_api", server.event_loop.to_owned()),
            ("arch_bits", usize::BITS.to_string()),
            ("process_id", std::process::id().to_string()),
            ("run_id", server.run_id.clone()),
            ("tcp_port", server.port.to_string()),
            ("server_time_usec", number(now_ms.saturating_mul(1000))),
            ("uptime_in_seconds", number(uptime)),
            ("uptime_in_days", number(uptime / 86_400)),
        ],
    );
}

fn clients(server: &Server, text: &mut String, _: &Guard<'_>) {
    lines(
        text,
        [
            ("connected_clients", server.clients.len().to_string()),
            ("cluster_connections", number(0)),
            ("maxclients", number(server.settings.max_clients())),
            ("blocked_clients", number(0)),
        ],
    );
}

fn memory(server: &Server, text: &mut String, _: &Guard<'_>) {
    let stats = server.cache.stats();
    let kinds = server.memory_kinds(&stats);
    let policy = if server.evicts { "allkeys-s3fifo" } else { "noeviction" };
    let resident = Process::now().map_or(0, |process| process.resident_bytes);
    lines(
        text,
        [
            ("used_memory", number(stats.memory)),
            ("used_memory_human", human(stats.memory)),
            ("used_memory_rss", number(resident)),
            ("used_memory_rss_human", human(resident)),
            ("maxmemory", number(stats.memory_limit)),
            ("maxmemory_human", human(stats.memory_limit)),
            ("maxmemory_policy", policy.to_owned()),
            ("moved_bytes", number(stats.moved_bytes)),
        ],
    );
    for (kind, bytes) in kinds.by_name() {
        line(text, format_args!("used_memory_{kind}:{bytes}"));
    }
}

fn persistence(server: &Server, text: &mut String, _: &Guard<'_>) {
    // Clients may use the server while items are restored, so `loading` is 0.
    let restore = server.restore_progress();
    lines(
        text,
        [
            ("loading", number(0)),
            ("rdb_bgsave_in_progress", number(0)),
            ("aof_enabled", number(0)),
            ("restore_in_progress", number(u64::from(restore.is_running))),
            ("restore_items", number(restore.items)),
            ("restored_items", number(restore.restored)),
            ("restore_skipped_items", number(restore.skipped)),
        ],
    );
}

fn disk(server: &Server, text: &mut String, _: &Guard<'_>) {
    let report = server.disk_report();
    line(text, format_args!("disk_enabled:{}", u8::from(report.is_some())));
    let Some(report) = report else { return };
    for field in DISK_FIELDS {
        line(text, format_args!("{}:{}", field.info, (field.value)(&report)));
    }
    line(text, format_args!("disk_write_amplification:{:.3}", report.write_amplification()));
    line(text, format_args!("disk_reads_per_hit:{:.3}", report.reads_per_hit()));
}

fn stats(server: &Server, text: &mut String, _: &Guard<'_>) {
    let totals = server.totals_since_reset();
    let (stats, before) = server.stats();
    let since = |now: u64, before: u64| number(now.saturating_sub(before));
    let expired_misses = since(stats.misses_expired, before.misses_expired);
    let evicted_misses = since(stats.misses_evicted, before.misses_evicted);
    let rates = server.rates();
    let kib = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    let misses = |s: nuthatch_cache::Stats| s.misses_absent + s.misses_expired + s.misses_evicted;
    lines(
        text,
        [
            ("total_connections_received", number(totals.connections)),
            ("total_commands_processed", number(totals.calls())),
            ("instantaneous_ops_per_sec", number(rates.calls)),
            ("instantaneous_input_kbps", kib(rates.received)),
            ("instantaneous_output_kbps", kib(rates.sent)),
            ("keyspace_hits_per_sec", number(rates.hits)),
            ("keyspace_misses_per_sec", number(rates.misses)),
            ("total_net_input_bytes", number(totals.received)),
            ("total_net_output_bytes", number(totals.sent)),
            ("rejected_connections", number(server.clients.refused())),
            ("http_requests_refused", number(server.clients.http_refused())),
            ("expired_keys", since(stats.expired, before.expired)),
            ("evicted_keys", since(stats.evicted, before.evicted)),
            ("keyspace_hits", since(stats.hits, before.hits)),
            ("keyspace_misses", since(misses(stats), misses(before))),
            ("keyspace_misses_expired", expired_misses),
            ("keyspace_misses_evicted", evicted_misses),
            ("output_limit_hits", number(totals.output_limits)),
            ("output_closed_connections", number(server.clients.output_closed())),
            ("total_error_replies", number(totals.errors.values().sum())),
            (
                "eventloop_cycles",
                number(server.iterations().iter().flat_map(|thread| &thread.times).sum()),
            ),
        ],
    );
}

fn compression(server: &Server, text: &mut String, _: &Guard<'_>) {
    let compression = &server.compression;
    let raw = compression.incompressible();
    lines(
        text,
        [
            ("compression", if compression.is_on() { "zstd" } else { "off" }.to_owned()),
            ("compression_level", compression.level().to_string()),
            ("compression_min_bytes", compression.min_len().to_string()),
            ("compression_dictionaries", compression.source().to_owned()),
            ("compression_incompressible_values", number(raw.values)),
            ("compression_incompressible_bytes", number(raw.raw_bytes)),
            ("compression_dictionaries_lost", number(compression.lost_dictionaries())),
            ("compression_dictionaries_refused", number(compression.refused_dictionaries())),
        ],
    );
    for SavedByDictionary { id, saved, memory_bytes, groups } in compression.saved() {
        let Saved { values, raw_bytes, encoded_bytes } = saved;
        let ratio = saved.ratio();
        // The rest of the groups has an empty name.
        let names = groups.iter().map(|name| match name.as_slice() {
            b"" => "(rest)".to_owned(),
            name => name.escape_ascii().to_string().replace(',', "\\x2c"),
        });
        let groups = names.collect::<Vec<_>>().join(" ");
        line(
            text,
            format_args!(
                "compression_dict_{id}:values={values},raw_bytes={raw_bytes},\
                 stored_bytes={encoded_bytes},ratio={ratio:.2},memory_bytes={memory_bytes},\
                 groups={groups}"
            ),
        );
    }
}

/// Writes a line for each snapshot.
fn snapshots(server: &Server, text: &mut String, _: &Guard<'_>) {
    let Some(snapshots) = &server.snapshots else { return };
    let plain = |bytes: &[u8]| bytes.escape_ascii().to_string().replace(',', "\\x2c");
    for report in snapshots.reports() {
        let SnapshotReport { name, entries, bytes, switches, rejected, hits, misses, .. } = &report;
        let SnapshotReport { errors, refused_writes, age_seconds, .. } = &report;
        let (prefix, path) = (plain(&report.prefix), plain(report.path.as_os_str().as_bytes()));
        let error =
            report.error.as_deref().map_or_else(String::new, |error| plain(error.as_bytes()));
        line(
            text,
            format_args!(
                "snapshot_{name}:prefix={prefix},path={path},entries={entries},bytes={bytes},\
                 age_seconds={age_seconds:.0},switches={switches},rejected={rejected},hits={hits},\
                 misses={misses},read_errors={errors},refused_writes={refused_writes},\
                 error={error}"
            ),
        );
    }
}

fn replication(_: &Server, text: &mut String, _: &Guard<'_>) {
    lines(text, [("role", "master".to_owned()), ("connected_slaves", number(0))]);
}

fn command_stats(server: &Server, text: &mut String, _: &Guard<'_>) {
    for (name, totals) in server.totals_since_reset().commands {
        let (calls, rejected, failed) = (totals.calls, totals.rejected, totals.failed);
        let us = totals.ns / 1000;
        let each = if calls == 0 { 0.0 } else { totals.ns as f64 / 1000.0 / calls as f64 };
        line(
            text,
            format_args!(
                "cmdstat_{name}:calls={calls},usec={us},usec_per_call={each:.2},\
                 rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

fn error_stats(server: &Server, text: &mut String, _: &Guard<'_>) {
    for (code, count) in server.totals_since_reset().errors {
        line(text, format_args!("errorstat_{code}:count={count}"));
    }
}

fn latency_stats(server: &Server, text: &mut String, _: &Guard<'_>) {
    for (name, totals) in server.totals_since_reset().commands {
        if totals.times.iter().all(|count| *count == 0) {
            continue;
        }
        let [p50, p99, p999] =
            [500, 990, 999].map(|part| quantile_ns(&totals.times, part) as f64 / 1000.0);
        line(
            text,
            format_args!(
                "latency_percentiles_usec_{name}:p50={p50:.3},p99={p99:.3},p99.9={p999:.3}"
            ),
        );
    }
}

fn cluster(server: &Server, text: &mut String, _: &Guard<'_>) {
    lines(text, [("cluster_enabled", number(u64::from(server.cluster.is_some())))]);
    let Some(cluster) = &server.cluster else { return };
    let report = cluster.report();
    for field in CLUSTER_FIELDS {
        line(text, format_args!("{}:{}", field.info, (field.value)(&report)));
    }
    for (kind, count) in server.totals_since_reset().refused_by_cluster() {
        line(text, format_args!("cluster_refused_{kind}:{count}"));
    }
}

/// Items in the sample from which the number of expiring keys is estimated.
const SAMPLED_ITEMS: usize = 1024;

/// A sample of items.
#[derive(Default)]
struct Sampled {
    items: u64,
    expiring: u64,
    ttl_ms: u64,
}

/// Writes the number of keys. The number of expiring ones is estimated from the first items in hash
/// order, and exact if these are all.
fn keyspace(server: &Server, text: &mut String, guard: &Guard<'_>) {
    let (keys, in_cache) = (server.keys(), server.cache.len());
    if keys == 0 {
        return;
    }
    let (now_ms, mut found) = (guard.now_ms(), Sampled::default());
    let cursor = guard.scan_in_memory(0, SAMPLED_ITEMS, |item| {
        found.items += 1;
        if let Some(at) = item.expires_ms() {
            found.expiring += 1;
            found.ttl_ms += at.saturating_sub(now_ms);
        }
    });
    let Sampled { items, expiring, ttl_ms } = found;
    let expires = match (cursor, items) {
        (0, _) => expiring,
        (_, 0) => 0,
        _ => (u128::from(in_cache) * u128::from(expiring) / u128::from(items)) as u64,
    };
    let avg_ttl = ttl_ms.checked_div(expiring).unwrap_or(0);
    line(text, format_args!("db0:keys={keys},expires={expires},avg_ttl={avg_ttl}"));
}

fn cpu(_: &Server, text: &mut String, _: &Guard<'_>) {
    let seconds = |seconds: f64| format!("{seconds:.6}");
    let (user, system) =
        Process::now().map_or((0.0, 0.0), |process| (process.user_seconds, process.system_seconds));
    lines(text, [("used_cpu_sys", seconds(system)), ("used_cpu_user", seconds(user))]);
}
