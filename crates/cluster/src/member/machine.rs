//! The state of a member.

use super::avoided::Avoided;
use super::change::{Author, Change};
use super::config::{Data, MemberConfig};
use super::holding::Holding;
use super::messages::{Event, Output};
use super::settle::Settle;
use super::view::View;
use crate::boot_clock::BootTime;
use crate::lease::Lease;
use crate::map::SlotMap;
use crate::node::Node;
use crate::node_id::NodeId;
use crate::request::Request;
use crate::slot::SlotSet;
use std::collections::VecDeque;

/// A node's part in the cluster, as a state machine without input, output or a clock: it registers
/// the node, keeps its lease alive, watches the others, and takes and hands over slots.
///
/// The program passes what happened to [`handle`](Self::handle), does what
/// [`next_output`](Self::next_output) returns, in order, and calls `handle` with `Input::Tick` at
/// [`wake_at`](Self::wake_at).
#[derive(Debug)]
pub struct Member {
    pub(super) config: MemberConfig,
    pub(super) phase: Phase,
    pub(super) lease: Option<Lease>,
    /// All leases of this node, which it may replace.
    pub(super) own_leases: Vec<i64>,
    pub(super) view: View,
    /// Nodes to which slots could not be moved.
    pub(super) avoided: Avoided,
    /// The identity of the data in etcd, once this node has read or written it.
    pub(super) identity: Option<String>,
    pub(super) etcd_away: EtcdAway,
    pub(super) holding: Holding,
    pub(super) calls: Calls,
    pub(super) transfer: Option<Transfer>,
    pub(super) settle: Settle,
    /// What the node should announce.
    pub(super) node: Node,
    pub(super) watch: u64,
    /// Whether the watch has failed, and all keys have to be read anew.
    pub(super) has_to_read: bool,
    /// Whether a plan may require something.
    pub(super) has_to_plan: bool,
    /// The time of the last call of `handle`.
    pub(super) last: BootTime,
    /// When a plan may require something although nothing has changed.
    pub(super) replan_at: Option<BootTime>,
    /// No plan is computed before this time.
    pub(super) plan_at: BootTime,
    /// No transaction is made before this time.
    pub(super) retry_at: BootTime,
    pub(super) is_drained: bool,
    /// Until this time, a forgotten node registers only if it owns no slots any more.
    pub(super) forgotten_until: BootTime,
    pub(super) outputs: VecDeque<Output>,
}

/// How far the registration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is no lease. A grant is requested at this time.
    Start(BootTime),
    /// A lease was requested.
    Granting,
    /// There is a lease. The keys are read at this time, to register the node.
    BeforeRead(BootTime),
    /// The keys are read, to register the node.
    Reading,
    /// The node's key is written.
    Registering,
    /// The keys are read after the registration.
    Loading,
    /// The node is registered, and the view is newer than the registration.
    Registered,
    /// The key of the node gets the lease of the next process in the place of this one.
    Stopping { before: i64, next: Option<i64> },
    /// The lease was ended on purpose, or is left to the next process.
    Left,
    /// The data in etcd are others than before.
    Refused,
}

/// A request without a response so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) call: u64,
    pub(super) sent: BootTime,
    pub(super) deadline: BootTime,
    /// The last revision of etcd that the node had seen.
    pub(super) revision: i64,
}

/// Requests without a response. At most one of each kind.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    /// Steps of the registration, and reads of all keys.
    pub(super) session: Option<Pending>,
    /// Keep-alives, and their confirmations.
    pub(super) renewal: Option<Pending>,
    /// A transaction.
    pub(super) change: Option<(Pending, Purpose)>,
    /// A transaction that requests another node to end its lease.
    pub(super) forget: Option<(Pending, NodeId)>,
}

impl Calls {
    /// Returns all requests without a response.
    pub(super) fn pending(&self) -> impl Iterator<Item = Pending> {
        let change = self.change.as_ref().map(|(pending, _)| *pending);
        let forget = self.forget.map(|(pending, _)| pending);
        [self.session, self.renewal, change, forget].into_iter().flatten()
    }
}

/// Whether a node may serve without a lease, and whether it has to.
#[derive(Debug, Default)]
pub(super) struct EtcdAway {
    /// Whether the node has had a permit, and etcd has not reported anything since that excludes
    /// that it still owns its slots.
    pub(super) may_serve: bool,
    /// Whether the last request for the lease or the registration has no answer of etcd.
    pub(super) is_away: bool,
}

/// What a transaction is for.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// Announces the node as in this value.
    Announce(Node),
    Claim(Change),
    BeginMove(Change),
    FinishMove(Change),
    AbortMove(Change),
}

/// Slots that move to another node.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) number: u64,
    pub(super) slots: SlotSet,
    pub(super) target: NodeId,
    /// The lease of the target: another one means that it has restarted without the items.
    pub(super) target_lease: i64,
    pub(super) stage: Stage,
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its begin is written to etcd.
    Beginning,
    /// The program sends items.
    Sending,
    /// All items are at the target, and no requests are executed for the slots.
    Sealed,
    /// The transfer has to end without effect.
    Aborting,
}

impl Member {
    /// Creates a member, which begins with the first call of [`handle`](Self::handle).
    #[must_use]
    pub fn new(config: MemberConfig) -> Self {
        Self {
            phase: Phase::Start(BootTime::default()),
            lease: None,
            own_leases: config.previous_leases.clone(),
            view: View::new(config.keys.clone()),
            avoided: Avoided::default(),
            identity: None,
            etcd_away: EtcdAway::default(),
            holding: Holding::new(config.node.id, &config.held.slots),
            calls: Calls::default(),
            transfer: None,
            settle: Settle::new(config.settle),
            node: config.node.clone(),
            watch: 0,
            has_to_read: false,
            has_to_plan: false,
            last: BootTime::default(),
            replan_at: None,
            plan_at: BootTime::default(),
            retry_at: BootTime::default(),
            is_drained: false,
            forgotten_until: BootTime::default(),
            outputs: VecDeque::new(),
            config,
        }
    }

    /// Returns what the program has to do next; `None` until the next call of `handle`.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the data in etcd as this node has seen them, for [`MemberConfig::held`] of the next
    /// run; `None` before it has.
    pub fn data(&self) -> Option<Data> {
        let identity = self.identity.as_ref()?.trim_end().to_owned();
        Some(Data { identity, revision: self.view.map().revision() })
    }

    /// Returns slots with items, each with the epoch in which this node served it. A program that
    /// keeps items across restarts stores them, for [`MemberConfig::held`].
    pub fn held(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.holding.held()
    }

    /// Returns the slots that this node serves while its permit holds.
    pub fn serving(&self) -> &SlotSet {
        self.holding.serving()
    }

    /// Returns the map of the cluster, as this node knows it.
    pub fn map(&self) -> &SlotMap {
        self.view.map()
    }

    /// Returns the lease in etcd, for [`MemberConfig::previous_leases`] of the next run.
    pub fn lease(&self) -> Option<i64> {
        self.lease.as_ref().map(Lease::id)
    }

    pub(super) fn id(&self) -> NodeId {
        self.node.id
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Sends a request.
    pub(super) fn call(&mut self, now: BootTime, request: Request) -> Pending {
        self.calls.last += 1;
        let (call, timeout) = (self.calls.last, self.config.call_timeout);
        self.outputs.push_back(Output::Call { call, request, timeout });
        let revision = self.view.map().revision();
        Pending { call, sent: now, deadline: now.plus(timeout), revision }
    }

    /// Returns the author of changes; `None` without a lease.
    pub(super) fn author(&self) -> Option<Author<'_>> {
        let lease = self.lease.as_ref()?.id();
        Some(Author { keys: &self.config.keys, map: self.view.map(), id: self.id(), lease })
    }

    /// Handles what changed in the view.
    pub(super) fn reconcile(&mut self, now: BootTime) {
        let changed = self.view.take_changes();
        self.outputs.extend(self.view.problems.take_events().into_iter().map(Output::Event));
        if changed.nodes {
            self.settle.note_change(now);
        }
        if changed.map {
            self.has_to_plan = true;
            let events = self.holding.reconcile(self.view.map());
            self.outputs.extend(events.into_iter().map(Output::Event));
            self.emit(Event::MapChanged(self.view.map().clone().into()));
        }
    }
}
