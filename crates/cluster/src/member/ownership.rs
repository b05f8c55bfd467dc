//! What a member does about slots: claims, transfers, announcements.

use super::change::Change;
use super::machine::{Member, Phase, Purpose, Stage, Transfer};
use super::messages::Event;
use crate::boot_clock::BootTime;
use crate::map::{GROUP_SLOTS, Registered, SlotState};
use crate::node::{Node, Participation};
use crate::node_id::NodeId;
use crate::request::{Compare, Failure, Reply, Request, Response, Txn, Write};
use crate::slot::SlotSet;
use std::collections::BTreeMap;
use std::time::Duration;

/// The pause after a plan that requires nothing: changes by other nodes often come in groups.
const PLAN_PAUSE: Duration = Duration::from_millis(50);

impl Member {
    /// Begins the next transaction, if one is required and none is in progress.
    pub(super) fn advance_ownership(&mut self, now: BootTime) {
        if self.phase != Phase::Registered || self.calls.change.is_some() || now < self.retry_at {
            return;
        }
        if self.announced().is_some_and(|node| *node != self.node) {
            return self.announce(now);
        }
        self.advance_transfer(now);
        if self.calls.change.is_some() {
            return;
        }
        if !self.has_to_plan || now < self.plan_at {
            return;
        }
        self.note_drained();
        if self.settle.is_stable(now) {
            self.follow_plan(now);
        }
    }

    fn announced(&self) -> Option<&Node> {
        self.view.map().node(self.id()).map(|registered| &registered.node)
    }

    /// Writes what the node announces.
    fn announce(&mut self, now: BootTime) {
        let Some(lease) = self.lease() else { return };
        let key = self.config.keys.node(self.id());
        let compares = vec![Compare::Lease(key.clone(), lease)];
        let writes = vec![Write::Put { key, value: self.node.encode(), lease }];
        let pending = self.call(now, Request::Commit(Txn { compares, writes }));
        self.calls.change = Some((pending, Purpose::Announce(self.node.clone())));
    }

    /// Reports once that a draining node has no slots.
    fn note_drained(&mut self) {
        let is_drained = self.node.participation == Participation::Draining
            && self.view.map().slots_of(self.id()).is_empty();
        if is_drained && !self.is_drained {
            self.emit(Event::Drained);
        }
        self.is_drained = is_drained;
    }

    /// Claims slots without an owner, or begins to move slots that the plan assigns to another
    /// node.
    fn follow_plan(&mut self, now: BootTime) {
        let (claims, moves) = self.planned();
        let change = match self.author() {
            Some(author) if !claims.is_empty() => author.claim(&claims),
            _ => None,
        };
        if let Some(change) = change {
            self.holding.forget(&change.slots);
            return self.commit(now, change, Purpose::Claim);
        }
        self.has_to_plan = false;
        self.replan_at = self.avoided.next_end(now);
        self.plan_at = now.plus(PLAN_PAUSE);
        let (Some((target, slots)), None) = (moves, &self.transfer) else { return };
        self.plan_at = now;
        let change = self.author().and_then(|author| author.begin_move(&slots, target));
        let lease = self.view.map().node(target).map(|node| node.lease);
        if let (Some(change), Some(target_lease)) = (change, lease) {
            let (slots, stage) = (change.slots.clone(), Stage::Beginning);
            self.commit(now, change, Purpose::BeginMove);
            let number = self.calls.change.as_ref().map_or(0, |(pending, _)| pending.call);
            self.transfer = Some(Transfer { number, slots, target, target_lease, stage });
        }
    }

    /// Returns slots without an owner and their owners in the plan, and the slots of one transfer.
    ///
    /// A node claims if the plan assigns a slot to it, and then all slots of the same group for
    /// their owners as well: otherwise the owners would contend for the group, one after the other.
    fn planned(&self) -> (BTreeMap<u16, NodeId>, Option<(NodeId, SlotSet)>) {
        let map = self.view.map();
        let mut free = SlotSet::all();
        let mut own = SlotSet::new();
        for (range, ownership) in map.groups().iter().flat_map(|group| group.runs()) {
            if map.node(ownership.owner).is_some() {
                range.slots().for_each(|slot| free.remove(slot));
            }
            let is_moving = matches!(ownership.state, SlotState::Moving(_));
            if ownership.owner == self.id() && !is_moving {
                range.slots().for_each(|slot| own.insert(slot));
            }
        }
        for group in self.view.unreadable() {
            let first = u16::from(group) * GROUP_SLOTS as u16;
            (first..first + GROUP_SLOTS as u16).for_each(|slot| free.remove(slot));
        }
        let mut claims = BTreeMap::new();
        let mut own_groups = SlotSet::new();
        let mut moves: Option<(NodeId, SlotSet)> = None;
        if free.is_empty() && self.transfer.is_some() {
            return (claims, moves);
        }
        let mut rest = self.config.max_moving_slots;
        let targets = self.planned_targets();
        for ((slot, planned), target) in (0..).zip(self.planned_owners()).zip(targets) {
            if let Some(to) = target.filter(|to| *to != self.id() && own.contains(slot)) {
                let (target, slots) = moves.get_or_insert_with(|| (to, SlotSet::new()));
                if *target == to && rest > 0 {
                    slots.insert(slot);
                    rest -= 1;
                }
            }
            let Some(planned) = planned else { continue };
            if free.contains(slot) {
                claims.insert(slot, planned);
                if planned == self.id() {
                    own_groups.insert(slot / GROUP_SLOTS as u16);
                }
            }
        }
        claims.retain(|slot, _| own_groups.contains(*slot / GROUP_SLOTS as u16));
        (claims, moves)
    }

    /// Returns the node that claims each slot if it has no owner: its owner in the plan or, if that
    /// has stopped, in a plan without the nodes that have stopped.
    fn planned_owners(&self) -> Vec<Option<NodeId>> {
        let map = self.view.map();
        let planned = map.planned();
        let stopped: Vec<NodeId> = self.stopped().collect();
        if stopped.is_empty() {
            return planned;
        }
        let others = map.planned_without(&stopped);
        let is_stopped = |owner: &NodeId| stopped.contains(owner);
        let of_both = |(owner, other): (Option<NodeId>, _)| {
            if owner.as_ref().is_some_and(is_stopped) { other } else { owner }
        };
        planned.into_iter().zip(others).map(of_both).collect()
    }

    fn stopped(&self) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = self.view.map().nodes().values().map(|registered| &registered.node);
        nodes.filter(|node| node.is_stopped).map(|node| node.id)
    }

    /// Returns the node that each slot may be moved to: its owner in the plan, unless that has
    /// stopped, or slots could not be moved there. A node that drains then moves them to the
    /// others.
    fn planned_targets(&self) -> Vec<Option<NodeId>> {
        let map = self.view.map();
        let avoided: Vec<NodeId> = self.avoided.at(self.last).chain(self.stopped()).collect();
        if self.node.participation == Participation::Draining {
            return map.planned_without(&avoided);
        }
        let mut targets = map.planned();
        for target in &mut targets {
            target.take_if(|id| avoided.contains(id));
        }
        targets
    }

    /// Takes the next step of a transfer, or ends one that is left over from before a restart.
    fn advance_transfer(&mut self, now: BootTime) {
        let Some(transfer) = &mut self.transfer else {
            return self.abort_left_over(now);
        };
        let target = self.view.map().node(transfer.target);
        let is_target_there = target.is_some_and(|target| target.lease == transfer.target_lease);
        if !is_target_there && transfer.stage != Stage::Aborting {
            transfer.stage = Stage::Aborting;
            let number = transfer.number;
            self.emit(Event::MoveCancelled { transfer: number });
        }
        let Some(Transfer { slots, target, stage, .. }) = self.transfer.clone() else { return };
        let map = self.view.map();
        let is_moving = |slot: u16| {
            let ownership = map.ownership(slot);
            ownership.is_some_and(|own| {
                own.owner == self.node.id && own.state == SlotState::Moving(target)
            })
        };
        if stage != Stage::Beginning && !slots.iter().any(is_moving) {
            // A transaction without a response has succeeded.
            self.transfer = None;
            self.has_to_plan = true;
            return;
        }
        let Some(author) = self.author() else { return };
        match stage {
            Stage::Beginning | Stage::Sending => {}
            Stage::Sealed => {
                if let Some(change) = author.finish_move(&slots, target) {
                    self.commit(now, change, Purpose::FinishMove);
                }
            }
            Stage::Aborting => {
                if let Some(change) = author.abort_move(&slots) {
                    self.commit(now, change, Purpose::AbortMove);
                }
            }
        }
    }

    /// Ends moves that are left over from before a restart, or from a transaction whose response
    /// was lost.
    fn abort_left_over(&mut self, now: BootTime) {
        if !self.has_to_plan || now < self.plan_at {
            return;
        }
        let own = self.view.map().slots_of(self.id());
        if let Some(change) = self.author().and_then(|author| author.abort_move(&own)) {
            self.commit(now, change, Purpose::AbortMove);
        }
    }

    /// Notes that the program has sent all items of a transfer and sealed its slots, or that it has
    /// failed to.
    pub(super) fn end_transfer(&mut self, number: u64, is_complete: bool) {
        let Some(transfer) = &mut self.transfer else { return };
        if transfer.number != number || transfer.stage != Stage::Sending {
            return;
        }
        if is_complete && self.etcd_away.is_away && self.config.serves_without_etcd {
            // Its slots would be served by no node until etcd can be reached.
            transfer.stage = Stage::Aborting;
            self.emit(Event::MoveCancelled { transfer: number });
        } else if is_complete {
            transfer.stage = Stage::Sealed;
            self.holding.seal(&transfer.slots);
        } else {
            transfer.stage = Stage::Aborting;
            self.avoided.note_failure(transfer.target, self.last);
        }
    }

    fn commit(&mut self, now: BootTime, change: Change, purpose: fn(Change) -> Purpose) {
        let pending = self.call(now, Request::Commit(change.txn.clone()));
        self.calls.change = Some((pending, purpose(change)));
    }

    /// Handles the response to a transaction.
    pub(super) fn change_response(
        &mut self,
        now: BootTime,
        purpose: &Purpose,
        result: &Result<Response, Failure>,
    ) {
        let committed = match result {
            Ok(Response { reply: Reply::Committed { succeeded: true }, revision, .. }) => *revision,
            Err(Failure::LeaseAbsent) => return self.lose(now),
            _ => {
                // Another node was faster, or the outcome is unknown: the watch shows it.
                self.retry_at = now.plus(self.config.retry);
                self.has_to_plan = true;
                if matches!(purpose, Purpose::BeginMove(_)) {
                    self.transfer = None;
                }
                return;
            }
        };
        match purpose {
            Purpose::Announce(node) => {
                let Some(lease) = self.lease() else { return };
                let node = node.clone();
                self.view.set_node(Registered { node, lease, revision: committed });
            }
            Purpose::Claim(change)
            | Purpose::BeginMove(change)
            | Purpose::FinishMove(change)
            | Purpose::AbortMove(change) => {
                change.groups(committed).for_each(|group| self.view.set_group(group));
            }
        }
        self.reconcile(now);
        match (purpose, &mut self.transfer) {
            (Purpose::BeginMove(_), Some(transfer)) => {
                transfer.stage = Stage::Sending;
                let Transfer { number, slots, target, .. } = transfer.clone();
                self.emit(Event::MoveOut { transfer: number, slots, target });
            }
            (Purpose::FinishMove(_), _) => {
                if let Some(transfer) = self.transfer.take() {
                    self.avoided.note_success(transfer.target);
                }
                self.has_to_plan = true;
            }
            _ => {}
        }
    }
}
