//! What `INFO`, `CLUSTER INFO`, `/metrics` and the live page report of this node.

use super::Cluster;
use super::coverage::{Coverage, NodeSlots};
use super::forwarding::state::ForwardCounts;
use super::move_counters::MoveProgress;
use crate::report_field::{ReportField, counter, gauge};
use nuthatch_cluster::lease::Permission;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The state and the counters of this node.
pub(crate) struct ClusterReport {
    pub(crate) permission: Permission,
    /// The time until the lease ends, as far as it permits to serve; zero without one.
    pub(crate) permitted_for: Duration,
    pub(crate) owned: usize,
    pub(crate) served: usize,
    /// Slots of all nodes whose leases exist.
    pub(crate) covered: usize,
    /// Nodes whose leases exist.
    pub(crate) nodes: usize,
    pub(crate) dropped_items: u64,
    pub(crate) lost_leases: u64,
    pub(crate) moves: MoveProgress,
    pub(crate) forwards: ForwardCounts,
}

/// All fields.
pub(crate) const CLUSTER_FIELDS: &[ReportField<ClusterReport, f64>] = &[
    gauge(
        ("cluster_permitted", "nuthatch_cluster_permitted"),
        "1 while the node has a lease in etcd and may serve its slots, otherwise 0.",
        |it| f64::from(u8::from(it.permission == Permission::Lease)),
    ),
    gauge(
        ("cluster_serves_without_lease", "nuthatch_cluster_serves_without_lease"),
        "1 while the node serves its slots without a lease, since etcd cannot be reached \
         (etcd-away), otherwise 0.",
        |it| f64::from(u8::from(it.permission == Permission::WithoutLease)),
    ),
    gauge(
        ("cluster_permit_seconds", "nuthatch_cluster_permit_seconds"),
        "Time until the permit of the lease ends, unless the node renews it before; 0 without one.",
        |it| it.permitted_for.as_secs_f64(),
    ),
    gauge(
        ("cluster_slots_owned", "nuthatch_cluster_slots_owned"),
        "Slots that the node owns in etcd.",
        |it| it.owned as f64,
    ),
    gauge(
        ("cluster_slots_served", "nuthatch_cluster_slots_served"),
        "Slots that the node serves while it is permitted.",
        |it| it.served as f64,
    ),
    gauge(
        ("cluster_slots_covered", "nuthatch_cluster_slots_covered"),
        "Slots of the whole cluster whose owner has a lease, as this node knows it; at most 16384.",
        |it| it.covered as f64,
    ),
    gauge(
        ("cluster_nodes", "nuthatch_cluster_nodes"),
        "Nodes of the cluster that have a lease, as this node knows it.",
        |it| it.nodes as f64,
    ),
    counter(
        ("cluster_dropped_items", "nuthatch_cluster_dropped_items"),
        "Items that were removed because another node owns, or has owned, their slots, in memory \
         and on disk. Includes items that were moved.",
        |it| it.dropped_items as f64,
    ),
    counter(
        ("cluster_leases_lost", "nuthatch_cluster_leases_lost"),
        "Leases in etcd that the node has lost.",
        |it| it.lost_leases as f64,
    ),
    gauge(
        ("cluster_slots_moving", "nuthatch_cluster_slots_moving"),
        "Slots whose items the node sends to another one now.",
        |it| it.moves.moving_slots as f64,
    ),
    counter(
        ("cluster_moves_finished", "nuthatch_cluster_moves_finished"),
        "Moves of slots from this node whose items were all sent.",
        |it| it.moves.finished as f64,
    ),
    counter(
        ("cluster_moves_failed", "nuthatch_cluster_moves_failed"),
        "Moves of slots from this node that failed. They are tried again.",
        |it| it.moves.failed as f64,
    ),
    counter(
        ("cluster_sent_items", "nuthatch_cluster_sent_items"),
        "Items that were sent to other nodes. One that was changed meanwhile counts again.",
        |it| it.moves.sent_items as f64,
    ),
    counter(
        ("cluster_sent_bytes", "nuthatch_cluster_sent_bytes"),
        "Bytes of items that were sent to other nodes.",
        |it| it.moves.sent_bytes as f64,
    ),
    counter(
        ("cluster_received_items", "nuthatch_cluster_received_items"),
        "Items that other nodes have sent.",
        |it| it.moves.received_items as f64,
    ),
    counter(
        ("cluster_received_bytes", "nuthatch_cluster_received_bytes"),
        "Bytes of items that other nodes have sent.",
        |it| it.moves.received_bytes as f64,
    ),
    counter(
        ("cluster_left_out_items", "nuthatch_cluster_left_out_items"),
        "Items that were lost in moves, since the other node does not accept values so long.",
        |it| it.moves.left_out as f64,
    ),
    counter(
        ("cluster_forwarded_requests", "nuthatch_cluster_forwarded_requests"),
        "Requests of clients that were forwarded to other nodes.",
        |it| it.forwards.forwarded as f64,
    ),
    counter(
        ("cluster_forwards_failed", "nuthatch_cluster_forwards_failed"),
        "Forwarded requests without a reply of an owner: the client got an error, or its \
         connection was closed.",
        |it| it.forwards.failed as f64,
    ),
];

impl Cluster {
    /// Returns the state and the counters of this node.
    pub(crate) fn report(&self) -> ClusterReport {
        self.report_with(&self.coverage())
    }

    /// Returns the report with the slots of a coverage.
    pub(crate) fn report_with(&self, coverage: &Coverage) -> ClusterReport {
        let now = self.clock.now();
        let own = coverage.nodes.iter().find(|node| node.id == self.id);
        ClusterReport {
            permission: self.permit.permission(now),
            permitted_for: self.permit.leased_until().since(now),
            owned: own.map_or(0, NodeSlots::count),
            served: self.served_slots(),
            covered: coverage.covered(),
            nodes: coverage.nodes.iter().filter(|node| node.is_present).count(),
            dropped_items: self.dropped_items.load(Ordering::Relaxed),
            lost_leases: self.permit.losses(),
            moves: self.moves.progress(),
            forwards: self.forward_counts(),
        }
    }
}
