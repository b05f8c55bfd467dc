//! The log of the times at which this node serves slots.
//!
//! The line of a begin is written before the first request is executed, and the one of an end after
//! the last one. So the lines of all nodes, by the clock of one machine, show which node has served
//! a slot at a time, and that no two have.

use super::Cluster;
use super::transitions::Transitions;
use crate::log;
use nuthatch_cluster::boot_clock::BootTime;
use nuthatch_cluster::map::SlotMap;
use nuthatch_cluster::slot::SlotSet;
use std::time::Duration;

impl Cluster {
    /// Logs that the node begins to serve slots, if it has a permit. Call it before they are added
    /// to those that threads read.
    pub(super) fn log_begin(&self, transitions: &mut Transitions, slots: &SlotSet, map: &SlotMap) {
        self.log_lapse(transitions);
        let mut new = slots.clone();
        new.subtract(&transitions.journal.logged);
        if transitions.journal.permitted_until.is_some() && !new.is_empty() {
            log::slots_begin(&new, epoch(&new, map));
            transitions.journal.logged.add(&new);
        }
    }

    /// Logs that the node does not serve slots any more that were removed from those that threads
    /// read. Call it after requests in progress have ended.
    pub(super) fn log_end(&self, transitions: &mut Transitions) {
        self.log_lapse(transitions);
        let mut ended = transitions.journal.logged.clone();
        ended.subtract(&self.serving());
        self.log_ended(transitions, &ended, Duration::ZERO);
    }

    /// Logs that the permit to serve has ended by the clock, if it has.
    pub fn log_end_of_permit(&self) {
        self.log_lapse(&mut self.transitions());
    }

    /// Logs that the node has a permit until this time, or none if it has passed. Call it before
    /// the permit is set in the first case, and after it in the second.
    pub fn log_permit(&self, until: BootTime) {
        let mut transitions = self.transitions();
        self.log_lapse(&mut transitions);
        if until > self.clock.now() {
            if transitions.journal.permitted_until.replace(until).is_none() {
                self.log_begin(&mut transitions, &self.serving(), &self.map());
            }
        } else if transitions.journal.permitted_until.take().is_some() {
            let logged = transitions.journal.logged.clone();
            self.log_ended(&mut transitions, &logged, Duration::ZERO);
        }
    }

    fn log_lapse(&self, transitions: &mut Transitions) {
        let now = self.clock.now();
        if let Some(until) = transitions.journal.permitted_until.take_if(|until| *until <= now) {
            let logged = transitions.journal.logged.clone();
            self.log_ended(transitions, &logged, now.since(until));
        }
    }

    fn log_ended(&self, transitions: &mut Transitions, slots: &SlotSet, ago: Duration) {
        if !slots.is_empty() {
            log::slots_end(slots, epoch(slots, &self.map()), ago);
            transitions.journal.logged.subtract(slots);
        }
    }

    /// Returns the slots that are served while the permit holds.
    pub(super) fn serving(&self) -> SlotSet {
        let mut serving = self.served.to_set();
        serving.add(&self.moving.to_set());
        serving
    }
}

/// Returns the greatest epoch of slots.
fn epoch(slots: &SlotSet, map: &SlotMap) -> u64 {
    let epochs = slots.iter().filter_map(|slot| map.ownership(slot)).map(|found| found.epoch);
    epochs.max().unwrap_or_default()
}
