//! What the live page shows of the cache server beside its metrics: hot keys and big keys, slow
//! requests, clients, snapshots and the nodes of its cluster.

use crate::cluster::{Cluster, MemberRow};
use crate::state::ClientSummary;
use crate::state::Server;
use crate::state::slowlog::Entry;
use nuthatch_cluster::slot::SLOTS;
use nuthatch_listen::{LiveReport, LiveRow, LiveTable, LiveValue};
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// Returns the report of a server.
pub(super) fn report(server: &Server) -> LiveReport {
    let mut tables = vec![hot_keys(server), big_keys(server), slow(server), clients(server)];
    if let Some(snapshots) = &server.snapshots {
        let rows = snapshots.reports().into_iter().map(|one| {
            vec![
                ("name", one.name.as_str().into()),
                ("prefix", LiveValue::Private(one.prefix)),
                ("path", LiveValue::private(one.path.to_string_lossy().as_bytes())),
                ("entries", one.entries.into()),
                ("bytes", one.bytes.into()),
                ("age_seconds", one.age_seconds.into()),
                ("error", LiveValue::private(one.error.unwrap_or_default())),
            ]
        });
        tables.push(LiveTable::new("snapshots", rows.collect()));
    }
    tables.extend(server.cluster.as_deref().map(cluster));
    for report in &server.live_reports {
        tables.extend(report.tables());
    }
    LiveReport { server: "cache server", tables }
}

fn hot_keys(server: &Server) -> LiveTable {
    let report = server.hot_keys.report(Instant::now());
    let rows = report.keys.into_iter().map(|one| {
        vec![("key", one.key.into_live()), ("share", one.share.into()), ("error", one.error.into())]
    });
    let summary = vec![("samples", report.samples.into())];
    LiveTable { name: "hot_keys", summary, rows: rows.collect() }
}

fn big_keys(server: &Server) -> LiveTable {
    let report = server.big_keys();
    let rows = report.keys.into_iter().map(|one| {
        vec![
            ("key", one.key.into_live()),
            ("bytes", one.bytes.into()),
            ("compressed", u64::from(one.is_compressed).into()),
        ]
    });
    let summary = vec![
        ("examined", report.examined.into()),
        ("items", server.cache.len().into()),
        ("scans", report.scans.into()),
    ];
    LiveTable { name: "big_keys", summary, rows: rows.collect() }
}

fn slow(server: &Server) -> LiveTable {
    let entries = server.slowlog.newest(LiveTable::MAX_ROWS);
    let (logged, kept) = server.slow_requests();
    let summary = vec![("logged", logged.into()), ("kept", kept.into())];
    LiveTable { name: "slow", summary, rows: entries.into_iter().map(slow_row).collect() }
}

fn slow_row(entry: Entry) -> LiveRow {
    let Entry { id, time_s, us, args, peer, name } = entry;
    let mut args = args.into_iter();
    // The first word is the name of a command of the server, in any case.
    let command = String::from_utf8_lossy(&args.next().unwrap_or_default()).to_ascii_lowercase();
    vec![
        ("id", LiveValue::Number(id as f64)),
        ("time_seconds", time_s.into()),
        ("seconds", (us as f64 / 1e6).into()),
        ("command", LiveValue::Text(command)),
        ("arguments", LiveValue::Private(args.collect::<Vec<_>>().join(&b' '))),
        ("client", LiveValue::private(peer)),
        ("name", LiveValue::private(name)),
    ]
}

fn clients(server: &Server) -> LiveTable {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let now_ms = now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000;
    let (all, largest) = server.largest_clients(now_ms, LiveTable::MAX_ROWS);
    let rows = largest.into_iter().map(|one| {
        let ClientSummary { id, peer, info, age_s, idle_s, command, bytes } = one;
        vec![
            ("id", id.into()),
            ("client", LiveValue::private(peer)),
            ("name", LiveValue::private(info.name)),
            ("user", LiveValue::private(info.user)),
            ("library", LiveValue::private(info.library)),
            ("age_seconds", age_s.into()),
            ("idle_seconds", idle_s.into()),
            ("command", command.into()),
            ("bytes", bytes.into()),
        ]
    });
    let summary = vec![("all", (all as u64).into())];
    LiveTable { name: "clients", summary, rows: rows.collect() }
}

/// Returns the nodes of a cluster. Metrics have the state of this one.
fn cluster(cluster: &Cluster) -> LiveTable {
    let members = cluster.members();
    let summary = vec![("all", (members.len() as u64).into())];
    let rows = members.into_iter().map(|one| {
        let MemberRow { id, address, state, weight, slots, is_self } = one;
        vec![
            ("id", LiveValue::Text(id.to_string())),
            ("address", LiveValue::private(address)),
            ("state", state.into()),
            ("weight", u64::from(weight).into()),
            ("slots", (slots.owned as u64).into()),
            ("share", (slots.owned as f64 / SLOTS as f64).into()),
            ("moving_out", (slots.moving_out as u64).into()),
            ("moving_in", (slots.moving_in as u64).into()),
            ("this_node", u64::from(is_self).into()),
        ]
    });
    LiveTable { name: "cluster", summary, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_slow_requests_are_private_and_commands_are_not() {
        let args = ["SET", "user:7", "secret"].map(|arg| arg.as_bytes().to_vec());
        let (peer, name) = ("127.0.0.1:5".to_owned(), String::new());
        let entry = Entry { id: 1, time_s: 2, us: 1500, args: args.into(), peer, name };
        let row = slow_row(entry);
        assert_eq!(row[2], ("seconds", LiveValue::Number(0.0015)));
        assert_eq!(row[3], ("command", "set".into()));
        assert_eq!(row[4], ("arguments", LiveValue::private(*b"user:7 secret")));
        assert_eq!(row[5], ("client", LiveValue::private(*b"127.0.0.1:5")));
    }
}
