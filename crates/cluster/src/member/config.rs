//! Settings of a member.

use crate::keys::Keys;
use crate::node::Node;
use std::time::Duration;

/// The slots whose items of the previous run of a node may be valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The data in etcd whose epochs these are: [`Member::data`](super::Member::data). With other
    /// data, no slot is held.
    pub data: Data,
    /// Each slot with the epoch in which the node served it.
    pub slots: Vec<(u16, u64)>,
}

/// The data of a cluster in etcd, as a node has seen them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Their identity. It is another one if they were deleted and written anew.
    pub identity: String,
    /// The revision of etcd, which is lower if etcd was restored from a backup.
    pub revision: i64,
}

/// Settings of a member.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// The keys of the cluster.
    pub keys: Keys,
    /// What the node announces.
    pub node: Node,
    /// The last leases of previous runs of this node. Set only those of processes that have ended,
    /// or stopped with [`Event::Stopped`](super::Event::Stopped): if the node's key is bound to one
    /// of them, the node registers without waiting for its end.
    pub previous_leases: Vec<i64>,
    /// Slots whose items of the previous run may be valid.
    pub held: Held,
    /// The time to live of the lease, rounded to seconds. Slots of a node that died have other
    /// owners at most `ttl`, `settle` and about a second later.
    pub ttl: Duration,
    /// How much earlier than the lease the permission to serve ends.
    pub margin: Duration,
    /// How long the set of nodes has to be unchanged before slots are claimed or moved, so that
    /// nodes that start together share the slots at once.
    pub settle: Duration,
    /// The maximum time for a response of etcd.
    pub call_timeout: Duration,
    /// The pause after a failure.
    pub retry: Duration,
    /// The maximum number of slots that the node moves at a time.
    pub max_moving_slots: usize,
    /// Whether the node serves its slots on without a lease while etcd cannot be reached. Another
    /// node that reaches etcd may then serve the same slots.
    pub serves_without_etcd: bool,
}

impl MemberConfig {
    /// Returns the defaults for a node: its slots have other owners at most 10 seconds after it
    /// died.
    #[must_use]
    pub fn new(keys: Keys, node: Node) -> Self {
        Self {
            keys,
            node,
            previous_leases: Vec::new(),
            held: Held::default(),
            ttl: Duration::from_secs(8),
            margin: Duration::from_secs(1),
            settle: Duration::from_millis(500),
            call_timeout: Duration::from_secs(2),
            retry: Duration::from_millis(200),
            max_moving_slots: 2048,
            serves_without_etcd: false,
        }
    }

    /// Returns the time to live in whole seconds.
    pub(super) fn ttl_s(&self) -> i64 {
        whole_seconds(self.ttl)
    }
}

/// Returns a time in seconds, rounded up.
pub(super) fn whole_seconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis().div_ceil(1000)).unwrap_or(i64::MAX)
}
