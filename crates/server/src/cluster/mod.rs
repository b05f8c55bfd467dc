//! This server as a member of a cluster: which slots it serves, and the answer for the others.
//!
//! The crate `nuthatch-cluster` decides which node owns a slot, and passes its decisions as events.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the state that all threads share, and the map of the cluster |
//! | `shared_slots.rs` | a set of slots as a bitmap that all threads read |
//! | `batch_permit.rs` | the permit to serve, checked around each batch of requests |
//! | `refusal.rs` | the error for keys that this node does not serve |
//! | `events.rs` | what the membership decides, applied to the state |
//! | `transitions.rs` | slots that are not served yet, or not any more |
//! | `awaited.rs` | slots whose requests wait for a limited time |
//! | `draining.rs` | waits until the node has no slots any more |
//! | `journal.rs` | the log of the times at which the node serves slots |
//! | `slot_thread.rs` | a thread of the cluster that uses the cache |
//! | `dropping.rs` | removes the items of slots that another node has served |
//! | `kept.rs`, `keeping.rs` | the items that outlive the process, and their slots |
//! | `moving/` | sends the items of slots to another node |
//! | `forwarder.rs` | forwards requests to the owners of their slots |
//! | `forwarding/` | requests that are forwarded, and connections to other nodes |
//! | `connection.rs` | a connection to another node |
//! | `reply_end.rs` | finds the end of a reply of another node |
//! | `move_counters.rs`, `move_reports.rs` | what was moved, and how transfers ended |
//! | `receiving.rs` | which transfers from other nodes are accepted |
//! | `frame.rs` | items on their way to another node |
//! | `changes.rs` | the keys that clients change while their slots move |
//! | `endpoint.rs` | addresses of nodes |
//! | `coverage.rs` | the ranges of slots of each node, for clients |
//! | `members.rs` | the nodes and their slots, for the live page |
//! | `operator.rs` | requests of operators to the membership |
//! | `report.rs` | what `INFO` and the metrics report of the node |

mod awaited;
mod batch_permit;
mod changes;
mod connection;
mod coverage;
mod draining;
mod dropping;
mod endpoint;
mod events;
mod forwarder;
mod forwarding;
mod frame;
mod journal;
mod keeping;
mod kept;
mod members;
mod move_counters;
mod move_reports;
mod moving;
mod operator;
mod receiving;
mod refusal;
mod reply_end;
mod report;
mod shared_slots;
mod slot_thread;
mod transitions;

pub(crate) use batch_permit::BatchPermit;
pub use connection::NodeAccess;
pub(crate) use coverage::{Coverage, NodeSlots};
pub use draining::Drained;
pub(crate) use forwarder::Forwarder;
pub(crate) use forwarding::{Forward, ForwardOutcome, ForwardResults, Replies, Requests, Targets};
pub(crate) use frame::{Record, records, write_of};
pub use kept::{ItemFiles, KeptSlot, KeptSlots};
pub(crate) use members::MemberRow;
pub use move_reports::MoveReport;
pub(crate) use receiving::TransferRefusal;
pub use refusal::Admission;
pub(crate) use refusal::Refusal;
pub(crate) use reply_end::ReplyEnd;
pub(crate) use report::CLUSTER_FIELDS;
pub(crate) use slot_thread::SlotThread;

use changes::Changes;
use forwarding::state::Forwarding;
use kept::Kept;
use move_counters::MoveCounters;
use move_reports::Reports;
use nuthatch_cache::Cache;
use nuthatch_cluster::boot_clock::BootClock;
use nuthatch_cluster::lease::{Permission, Permit};
use nuthatch_cluster::map::SlotMap;
use nuthatch_cluster::member::Command;
use nuthatch_cluster::node::Node as Announced;
use nuthatch_cluster::node_id::NodeId;
use shared_slots::SharedSlots;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Instant;
use transitions::Transitions;

/// A function that passes requests to the membership of this node.
type MemberInput = Box<dyn Fn(Command) + Send + Sync>;

/// What the threads of a server know about its cluster.
///
/// The program passes the events of the [membership](nuthatch_cluster) to
/// [`handle`](Self::handle), and shares the permit with it.
pub struct Cluster {
    id: NodeId,
    permit: Arc<Permit>,
    clock: Arc<dyn BootClock>,
    cache: Arc<Cache>,
    /// Slots that are served, and whose items do not move.
    served: SharedSlots,
    /// Slots that are served while their items move to another node.
    moving: SharedSlots,
    /// Slots that are not served, and whose requests wait.
    awaited: SharedSlots,
    /// The keys that were changed while their slots move.
    changes: Changes,
    /// How often the sets of slots have changed.
    generation: AtomicU64,
    /// Wakes the threads that serve requests.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
    map: RwLock<Arc<SlotMap>>,
    /// Nodes without a lease whose slots have no other owner yet. Clients of Redis Cluster expect
    /// that every slot that had an owner still has one until then.
    departed: Mutex<BTreeMap<NodeId, Announced>>,
    transitions: Mutex<Transitions>,
    /// Signals that the transitions have changed.
    changed: Condvar,
    /// How often slots were lost. A key that is watched may have changed since.
    losses: AtomicU64,
    /// Items that were dropped since another node has served their slots.
    dropped_items: AtomicU64,
    /// How often all items were removed by a request. Those of a transfer are then outdated.
    flushes: AtomicU64,
    moves: MoveCounters,
    reports: Reports,
    access: RwLock<Arc<NodeAccess>>,
    /// Passes requests of operators to the membership, once the node takes part in the cluster.
    member: OnceLock<MemberInput>,
    kept: Kept,
    forwarding: Forwarding,
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
            served: SharedSlots::default(),
            moving: SharedSlots::default(),
            awaited: SharedSlots::default(),
            changes: Changes::default(),
            generation: AtomicU64::new(0),
            wake: OnceLock::new(),
            map: RwLock::new(Arc::new(SlotMap::empty())),
            departed: Mutex::default(),
            transitions: Mutex::new(transitions),
            changed: Condvar::new(),
            losses: AtomicU64::new(0),
            dropped_items: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            moves: MoveCounters::default(),
            reports: Reports::default(),
            access: RwLock::default(),
            member: OnceLock::new(),
            kept: Kept::default(),
            forwarding: Forwarding::default(),
        }
    }

    /// Sets how this node connects to others, for new connections.
    pub fn set_access(&self, access: NodeAccess) {
        *self.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
    }

    fn access(&self) -> Arc<NodeAccess> {
        self.access.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the identifier of this node.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the number of slots that this node serves while its permit holds.
    #[must_use]
    pub fn served_slots(&self) -> usize {
        self.served.count() + self.moving.count()
    }

    /// Returns the number of items that were dropped since another node has served their slots.
    #[must_use]
    pub fn dropped_items(&self) -> u64 {
        self.dropped_items.load(Ordering::Relaxed)
    }

    /// Returns whether this node may serve its slots now, and why.
    #[must_use]
    pub fn permission(&self) -> Permission {
        self.permit.permission(self.clock.now())
    }

    /// Returns whether this node has items, whether it serves their slots or not.
    #[must_use]
    pub fn has_items(&self) -> bool {
        !self.cache.is_empty()
    }

    /// Returns how often the sets of slots have changed: then requests that wait for a slot can be
    /// executed or refused.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Sets what wakes the threads that serve requests, when the sets of slots have changed.
    pub(crate) fn wake_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A cluster has one server.
        let _ = self.wake.set(Box::new(wake));
    }

    /// Sets what receives the ends of transfers.
    pub fn report_moves_to(&self, receive: impl Fn(MoveReport) + Send + Sync + 'static) {
        self.reports.send_to(receive);
    }

    /// Notes that a request removes all items. Call it before they are removed.
    pub(crate) fn note_flush(&self) {
        self.flushes.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns how often requests have removed all items, those in progress included.
    fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::SeqCst)
    }

    /// Notes that the transitions, or the sets of slots, have changed.
    fn update(&self, transitions: &mut Transitions) {
        let expected = transitions.expected();
        self.awaited.replace(&transitions.awaited.update(&expected, Instant::now()));
        self.kept.files.set_receiving(transitions.is_receiving());
        self.changed.notify_all();
        self.resume_requests();
    }

    /// Lets requests that wait for slots be executed again.
    fn resume_requests(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        if let Some(wake) = self.wake.get() {
            wake();
        }
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
