//! A server as a node of a cluster: its metrics, and their line.

use super::exposition::Metrics;
use super::quantity::{count, rate, time};
use serde_json::{Value, json};

/// Slots of a cluster.
const SLOTS: f64 = 16_384.0;

/// The metrics of a node at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClusterNode {
    /// Gauges.
    is_permitted: bool,
    serves_without_lease: bool,
    permit_s: f64,
    owned: f64,
    served: f64,
    covered: f64,
    nodes: f64,
    /// Counters.
    moved: f64,
    down: f64,
}

impl ClusterNode {
    /// Returns the metrics of a server. `None` without a cluster.
    pub(super) fn of(points: &Metrics) -> Option<Self> {
        let value = |name: &str| points.value(name).unwrap_or_default();
        let refused = |kind: &str| {
            let mut kinds = points.by("nuthatch_cluster_refused_requests_total", "kind");
            kinds.find(|(found, _)| *found == kind).map_or(0.0, |(_, count)| count)
        };
        Some(Self {
            is_permitted: points.value("nuthatch_cluster_permitted")? > 0.0,
            serves_without_lease: value("nuthatch_cluster_serves_without_lease") > 0.0,
            permit_s: value("nuthatch_cluster_permit_seconds"),
            owned: value("nuthatch_cluster_slots_owned"),
            served: value("nuthatch_cluster_slots_served"),
            covered: value("nuthatch_cluster_slots_covered"),
            nodes: value("nuthatch_cluster_nodes"),
            moved: refused("moved"),
            down: refused("clusterdown"),
        })
    }

    /// Returns this with counters per second, for an interval that began with `earlier`.
    pub(super) fn since(self, earlier: Option<Self>, interval_s: f64) -> Self {
        let earlier = earlier.unwrap_or_default();
        let per = |now: f64, before: f64| {
            if interval_s > 0.0 { (now - before) / interval_s } else { 0.0 }
        };
        let (moved, down) = (per(self.moved, earlier.moved), per(self.down, earlier.down));
        Self { moved, down, ..self }
    }

    /// Returns the line, and whether it reports a problem.
    pub(super) fn line(self) -> (String, bool) {
        let lease = if self.is_permitted {
            format!("lease for {}", time(Some(self.permit_s)))
        } else if self.serves_without_lease {
            "serves without a lease".to_owned()
        } else {
            "no lease in etcd".to_owned()
        };
        let (served, owned, covered) = (count(self.served), count(self.owned), count(self.covered));
        let (nodes, moved, down) = (count(self.nodes), rate(self.moved), rate(self.down));
        let slots = count(SLOTS);
        let text = format!(
            "cluster   {lease}; serves {served} of {owned} slots; nodes {nodes}, slots covered \
             {covered} of {slots}; moved {moved}, clusterdown {down}"
        );
        (text, !self.is_permitted || self.covered < SLOTS)
    }

    /// Returns the metrics as JSON.
    pub(super) fn json(self) -> Value {
        json!({
            "is_permitted": self.is_permitted,
            "serves_without_lease": self.serves_without_lease,
            "permit_seconds": self.permit_s,
            "slots_owned": self.owned,
            "slots_served": self.served,
            "slots_covered": self.covered,
            "nodes": self.nodes,
            "moved_per_second": self.moved,
            "clusterdown_per_second": self.down,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_a_lease_is_a_problem() {
        let node = |permitted: u32, covered: u32| {
            let text = format!(
                "nuthatch_cluster_permitted {permitted}\nnuthatch_cluster_permit_seconds 6\n\
                 nuthatch_cluster_slots_covered {covered}\nnuthatch_cluster_nodes 3\n\
                 nuthatch_cluster_refused_requests_total{{kind=\"moved\"}} 40\n"
            );
            let points = Metrics::parse(&text).expect("metrics");
            ClusterNode::of(&points).expect("a node").since(None, 10.0)
        };
        let (line, is_problem) = node(1, 16_384).line();
        assert!(line.starts_with("cluster   lease for 6") && !is_problem, "{line}");
        assert!(line.contains("nodes 3, ") && line.contains("moved 4"), "{line}");
        assert!(node(1, 16_383).line().1);
        let (line, is_problem) = node(0, 16_384).line();
        assert!(line.contains("no lease in etcd") && is_problem, "{line}");
        assert_eq!(node(1, 9).json()["slots_covered"], 9.0);
        let alone = Metrics::parse("nuthatch_uptime_seconds 1\n").expect("metrics");
        assert!(ClusterNode::of(&alone).is_none());
    }
}
