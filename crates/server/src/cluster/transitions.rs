//! Slots that are not served yet, or not any more.

use super::awaited::Awaited;
use nuthatch_cluster::boot_clock::BootTime;
use nuthatch_cluster::member::Data;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SlotSet;
use std::collections::BTreeMap;
use std::time::Instant;

/// The slots between two states. One lock protects it together with changes of the sets of slots
/// that threads read.
pub(super) struct Transitions {
    /// Slots that this node serves as soon as they are not stale.
    pub(super) owned: SlotSet,
    /// Slots that may have items in the cache.
    pub(super) dirty: SlotSet,
    /// Slots whose items have to be dropped, since another node serves them or has served them.
    pub(super) stale: SlotSet,
    /// Slots whose records on disk that are not valid any more may be in the index.
    pub(super) invalid: SlotSet,
    /// The data in etcd, once the node has seen them.
    pub(super) data: Option<Data>,
    /// Whether the slots that outlive the process have to be stored.
    pub(super) has_to_keep: bool,
    /// Since when slots are stale, if there are some: since the first one, or since items were
    /// dropped last.
    pub(super) stale_since: Instant,
    /// Slots that move to another node.
    pub(super) outgoing: Option<Outgoing>,
    /// Slots that other nodes send.
    pub(super) incoming: BTreeMap<NodeId, Incoming>,
    /// Slots that were lost since the map has changed: their owners are not known yet.
    pub(super) lost: SlotSet,
    /// Slots whose requests wait.
    pub(super) awaited: Awaited,
    pub(super) journal: Journal,
    /// Whether all slots have moved away after a request to drain.
    pub(super) is_drained: bool,
    /// Whether the threads of the cluster have to end.
    pub(super) is_stopping: bool,
}

/// What the log has of the slots that this node serves.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Slots that the node serves.
    pub(super) logged: SlotSet,
    /// When the permit to serve ends; `None` without one.
    pub(super) permitted_until: Option<BootTime>,
}

/// Slots that move to another node.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    /// The number of the transfer.
    pub(super) transfer: u64,
    pub(super) target: NodeId,
    /// The slots that this node still owns.
    pub(super) slots: SlotSet,
    /// Whether a thread has begun to send the items.
    pub(super) is_begun: bool,
    /// Whether requests for the slots are not executed any more.
    pub(super) is_sealed: bool,
}

/// Slots that another node sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Incoming {
    /// The slots that move to this node, as the map has it.
    pub(super) slots: SlotSet,
    /// The transfer that the other node has begun, and not completed.
    pub(super) transfer: Option<IncomingTransfer>,
    /// Slots whose items are all there. The other node may begin the next transfer before this one
    /// knows that it owns them.
    pub(super) complete: SlotSet,
}

/// A transfer of items from another node.
#[derive(Clone, Debug)]
pub(super) struct IncomingTransfer {
    /// The random number that the other node has chosen for it.
    pub(super) token: u64,
    pub(super) slots: SlotSet,
    pub(super) stage: IncomingStage,
}

/// How far a transfer from another node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IncomingStage {
    /// Items that are there already have to be dropped first.
    Dropping,
    /// Items are accepted.
    Open,
}

impl Transitions {
    /// Creates the state of a node without slots, and with or without items.
    pub(super) fn new(has_items: bool) -> Self {
        Self {
            owned: SlotSet::new(),
            dirty: if has_items { SlotSet::all() } else { SlotSet::new() },
            stale: SlotSet::new(),
            invalid: SlotSet::new(),
            data: None,
            has_to_keep: false,
            stale_since: Instant::now(),
            outgoing: None,
            incoming: BTreeMap::new(),
            lost: SlotSet::new(),
            awaited: Awaited::default(),
            journal: Journal::default(),
            is_drained: false,
            is_stopping: false,
        }
    }

    /// Returns a transfer to another node, unless it is not wanted any more.
    pub(super) fn wanted(&mut self, transfer: u64) -> Option<&mut Outgoing> {
        self.outgoing.as_mut().filter(|outgoing| outgoing.transfer == transfer)
    }

    /// Lets the items of slots be dropped, if there may be some.
    pub(super) fn drop_items_of(&mut self, slots: &SlotSet) {
        if self.stale.is_empty() {
            self.stale_since = Instant::now();
        }
        self.stale.add(&slots.common(&self.dirty));
    }

    /// Lets the items of all slots be dropped that this node neither owns nor receives: those of
    /// the last process whose slots other nodes have taken since.
    pub(super) fn drop_items_of_others(&mut self, owned: &SlotSet) {
        let mut others = self.dirty.clone();
        others.subtract(owned);
        others.subtract(&self.owned);
        self.incoming.values().for_each(|incoming| others.subtract(&incoming.slots));
        self.drop_items_of(&others);
    }

    /// Returns whether items of stale slots have to be dropped before this node can serve or
    /// receive some of them.
    pub(super) fn awaits_dropping(&self) -> bool {
        self.stale.intersects(&self.owned)
            || self.incoming.values().any(|incoming| self.stale.intersects(&incoming.slots))
    }

    /// Returns whether another node sends items.
    pub(super) fn is_receiving(&self) -> bool {
        self.incoming.values().any(|incoming| incoming.transfer.is_some())
    }

    /// Returns the slots of complete transfers from other nodes.
    pub(super) fn received(&self) -> SlotSet {
        let mut received = SlotSet::new();
        self.incoming.values().for_each(|incoming| received.add(&incoming.complete));
        received
    }

    /// Forgets that other nodes send these slots.
    pub(super) fn end_incoming(&mut self, slots: &SlotSet) {
        self.incoming.retain(|_, incoming| {
            incoming.slots.subtract(slots);
            incoming.complete.subtract(slots);
            if let Some(transfer) = &mut incoming.transfer {
                transfer.slots.subtract(slots);
            }
            incoming.transfer.take_if(|transfer| transfer.slots.is_empty());
            !incoming.slots.is_empty()
        });
    }

    /// Returns the slots that are about to be served by this node or by the target of a transfer.
    pub(super) fn expected(&self) -> SlotSet {
        let mut expected = self.owned.common(&self.stale);
        expected.add(&self.received());
        expected.add(&self.lost);
        if let Some(outgoing) = self.outgoing.as_ref().filter(|outgoing| outgoing.is_sealed) {
            expected.add(&outgoing.slots);
        }
        expected
    }
}
