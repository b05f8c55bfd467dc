//! This server as a member of a cluster: which slots it serves, and the answer for the others.
//!
//! The crate `nuthatch-cluster` decides which node owns a slot, and passes its decisions as events.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the state that all threads share, and the map of the cluster |
//! | `served_slots.rs` | the slots that are served, as a bitmap |
//! | `batch_permit.rs` | the permit to serve, checked around each batch of requests |
//! | `refusal.rs` | the error for keys that this node does not serve |
//! | `events.rs` | what the membership decides, applied to the state |
//! | `transitions.rs` | slots that are not served yet, or not any more |
//! | `dropping.rs` | removes the items of slots that another node has served |
//! | `coverage.rs` | the ranges of slots of each node, for clients |

mod batch_permit;
mod coverage;
mod dropping;
mod events;
mod refusal;
mod served_slots;
mod transitions;

pub(crate) use batch_permit::BatchPermit;
pub(crate) use coverage::{Coverage, NodeSlots};
pub(crate) use dropping::Dropper;
pub use events::MoveReport;

use nuthatch_cache::Cache;
use nuthatch_cluster::boot_clock::BootClock;
use nuthatch_cluster::lease::Permit;
use nuthatch_cluster::map::SlotMap;
use nuthatch_cluster::node::Node as Announced;
use nuthatch_cluster::node_id::NodeId;
use served_slots::ServedSlots;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use transitions::Transitions;

/// What the threads of a server know about its cluster.
///
/// The program passes the events of the [membership](nuthatch_cluster) to
/// [`handle`](Self::handle), and shares the permit with it.
pub struct Cluster {
    id: NodeId,
    permit: Arc<Permit>,
    clock: Arc<dyn BootClock>,
    cache: Arc<Cache>,
    served: ServedSlots,
    map: RwLock<Arc<SlotMap>>,
    /// Nodes without a lease whose slots have no other owner yet. Clients of Redis Cluster expect
    /// that every slot that had an owner still has one until then.
    departed: Mutex<BTreeMap<NodeId, Announced>>,
    transitions: Mutex<Transitions>,
    /// Signals that slots wait for their items to be dropped, or that the server stops.
    changed: Condvar,
    /// How often slots were lost. A key that is watched may have changed since.
    losses: AtomicU64,
    /// Items that were dropped since another node has served their slots.
    dropped_items: AtomicU64,
}

impl Cluster {
    /// Creates the state of a node that serves no slots yet.
    #[must_use]
    pub fn new(
        id: NodeId,
        cache: Arc<Cache>,
        permit: Arc<Permit>,
        clock: Arc<dyn BootClock>,
    ) -> Self {
        let transitions = Transitions::new(!cache.is_empty());
        Self {
            id,
            permit,
            clock,
            cache,
            served: ServedSlots::default(),
            map: RwLock::new(Arc::new(SlotMap::empty())),
            departed: Mutex::default(),
            transitions: Mutex::new(transitions),
            changed: Condvar::new(),
            losses: AtomicU64::new(0),
            dropped_items: AtomicU64::new(0),
        }
    }

    /// Returns the identifier of this node.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the number of slots that this node serves while its permit holds.
    #[must_use]
    pub fn served_slots(&self) -> usize {
        self.served.count()
    }

    /// Returns the number of items that were dropped since another node has served their slots.
    #[must_use]
    pub fn dropped_items(&self) -> u64 {
        self.dropped_items.load(Ordering::Relaxed)
    }

    /// Returns whether this node is permitted to serve its slots now.
    #[must_use]
    pub fn is_permitted(&self) -> bool {
        self.permit.holds(self.clock.now())
    }

    /// Returns how often slots were lost.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Returns the map of the cluster, as this node knows it.
    pub(crate) fn map(&self) -> Arc<SlotMap> {
        self.map.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn departed(&self) -> MutexGuard<'_, BTreeMap<NodeId, Announced>> {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn transitions(&self) -> MutexGuard<'_, Transitions> {
        self.transitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("id", &self.id).finish_non_exhaustive()
    }
}
