//! A view as JSON.

use super::cluster::ClusterNode;
use super::disk::Disk;
use super::exposition::Histogram;
use super::view::{PERCENTILES, View};
use serde_json::{Map, Value, json};

/// Returns a view as JSON in one line. Sizes are in bytes, times in seconds, and rates per second.
pub(crate) fn json(view: &View, address: &str) -> String {
    let now = &view.now;
    let commands = view.commands.iter().map(|command| {
        let value = json!({
            "calls": command.calls,
            "calls_per_second": command.rate,
            "errors_per_second": command.errors,
            "seconds": percentiles(&command.times),
        });
        (command.name.clone(), value)
    });
    let commands: Map<String, Value> = commands.collect();
    let compressed = now.compressed.iter().map(|(dictionary, one)| {
        (dictionary.clone(), json!({ "raw": one.raw, "stored": one.stored }))
    });
    let value = json!({
        "address": address,
        "version": now.version,
        "uptime_seconds": now.uptime_s,
        "over_seconds": view.interval_s,
        "requests_per_second": view.requests,
        "errors_per_second": view.errors,
        "slow_requests_per_second": view.slow,
        "hit_ratio": view.hit_ratio(),
        "hits_per_second": view.hits,
        "misses_per_second": object(&view.misses),
        "items": now.items,
        "stored_per_second": view.stored,
        "removed_per_second": view.removed,
        "expired_per_second": view.expired,
        "evicted_per_second": view.evicted,
        "memory_bytes": object(&now.memory),
        "memory_limit_bytes": now.memory_limit,
        "compressed_bytes": compressed.collect::<Map<_, _>>(),
        "disk": view.disk.map(Disk::json),
        "cluster": view.cluster.map(ClusterNode::json),
        "connections": now.connections,
        "connections_limit": now.connections_limit,
        "connections_accepted_per_second": view.accepted,
        "connections_refused_per_second": view.refused,
        "output_limit_hits_per_second": view.output_limits,
        "received_bytes_per_second": view.received,
        "sent_bytes_per_second": view.sent,
        "event_loop_lag_seconds": percentiles(&view.event_loop_lag),
        "busy_by_thread": object(&view.busy),
        "process_cpus": view.cpu,
        "process_resident_bytes": now.resident,
        "commands": commands,
        "tables": now.report.json(),
    });
    format!("{value}\n")
}

fn object(numbers: &[(String, f64)]) -> Value {
    numbers.iter().map(|(name, number)| (name.clone(), Value::from(*number))).collect()
}

fn percentiles(times: &Histogram) -> Value {
    PERCENTILES
        .iter()
        .map(|(name, part)| ((*name).to_owned(), Value::from(times.quantile(*part))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::sample;
    use super::*;

    #[test]
    fn json_has_the_values_of_the_view() {
        let view = View::new(sample(20, 3000), Some(&sample(10, 1000)));
        let text = json(&view, "here");
        assert_eq!(text.lines().count(), 1);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["address"], "here");
        assert_eq!(value["requests_per_second"], 200.0);
        assert_eq!(value["misses_per_second"]["absent"], 100.0);
        assert_eq!(value["commands"]["get"]["calls"], 3000.0);
        assert_eq!(value["commands"]["set"]["seconds"]["p50"], Value::Null);
        assert_eq!(value["memory_bytes"]["index"], 524_288.0);
    }
}
