//! A simulation of large clusters: members, and an etcd in memory, in steps of the same length.
//!
//! The members are those of a real cluster; only etcd, the network and the items are not. A
//! request is executed in the step after it was made, and its response arrives one step later. A
//! transfer of items takes one step.

use crate::boot_clock::BootTime;
use crate::keys::Keys;
use crate::member::{Event, Input, Items, Member, MemberConfig, Output};
use crate::memory_etcd::MemoryEtcd;
use crate::node::{Addresses, Node};
use crate::node_id::NodeId;
use crate::request::{Change, Request};
use crate::slot::SLOTS;
use std::time::Duration;

/// The length of a step.
pub const STEP: Duration = Duration::from_millis(10);
/// The maximum number of steps until a cluster is balanced.
const MAX_STEPS: u32 = 30_000;

/// What a change of the cluster has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Steps until all slots were served and balanced, or the limit of 30,000.
    pub steps: u32,
    /// Slots whose owner has changed.
    pub moved_slots: usize,
    /// Transactions that wrote.
    pub commits: u64,
    /// Transactions that other nodes were faster than.
    pub conflicts: u64,
    /// Bytes of changed keys and values that etcd has sent to one node.
    pub watch_bytes: u64,
}

/// A node of the simulation.
struct Process {
    member: Member,
    wake: BootTime,
    /// What arrives in the next step.
    inputs: Vec<Input>,
    watch: Option<(u64, i64)>,
    slots: usize,
}

/// A simulated cluster.
pub struct Simulation {
    keys: Keys,
    now: BootTime,
    etcd: MemoryEtcd,
    processes: Vec<Option<Process>>,
    requests: Vec<(usize, u64, Request)>,
    cost: Cost,
}

impl Default for Simulation {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulation {
    /// Creates a simulation without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            keys: Keys::of_simulation(),
            now: BootTime::default().plus(Duration::from_mins(1)),
            etcd: MemoryEtcd::default(),
            processes: Vec::new(),
            requests: Vec::new(),
            cost: Cost::default(),
        }
    }

    /// Starts a node, with the lease and the epochs of its previous run, if there was one.
    pub fn start(&mut self, number: usize) {
        let addresses = Addresses {
            client: format!("cache-{number}.example:6379"),
            node: format!("cache-{number}.example:16379"),
            ..Addresses::default()
        };
        let node = Node::new(NodeId::numbered(number as u32), addresses);
        let mut config = MemberConfig::new(self.keys.clone(), node);
        self.processes.resize_with(self.processes.len().max(number + 1), || None);
        if let Some(previous) = &self.processes[number] {
            config.held.data = previous.member.data().unwrap_or_default();
            config.held.slots = previous.member.held().collect();
            config.previous_leases = previous.member.lease().into_iter().collect();
        }
        let member = Member::new(config);
        let process = Process { member, wake: self.now, inputs: Vec::new(), watch: None, slots: 0 };
        self.processes[number] = Some(process);
    }

    /// Ends a node as a crash does.
    pub fn kill(&mut self, number: usize) {
        self.processes[number] = None;
    }

    /// Runs for a number of steps.
    pub fn run(&mut self, steps: u32) {
        (0..steps).for_each(|_| self.step());
    }

    /// Runs until all slots are served in equal parts. Returns what has happened since the last
    /// call.
    pub fn settle(&mut self) -> Cost {
        while !self.is_balanced() && self.cost.steps < MAX_STEPS {
            self.step();
        }
        std::mem::take(&mut self.cost)
    }

    /// Returns the number of slots of each node.
    #[must_use]
    pub fn slots(&self) -> Vec<usize> {
        self.processes.iter().flatten().map(|process| process.slots).collect()
    }

    /// Returns the owner of each slot: the number of the node.
    #[must_use]
    pub fn owners(&self) -> Vec<Option<usize>> {
        let mut owners = vec![None; SLOTS];
        let Some(process) = self.processes.iter().flatten().next() else { return owners };
        let map = process.member.map();
        for (number, _) in self.processes.iter().enumerate().filter(|(_, it)| it.is_some()) {
            for slot in map.slots_of(NodeId::numbered(number as u32)).iter() {
                owners[usize::from(slot)] = Some(number);
            }
        }
        owners
    }

    /// Returns the bytes of the map in the memory of a node.
    #[must_use]
    pub fn map_bytes(&self) -> usize {
        let process = self.processes.iter().flatten().next();
        process.map_or(0, |process| process.member.map().memory())
    }

    fn is_balanced(&self) -> bool {
        let slots = self.slots();
        let (min, max) = (SLOTS / slots.len().max(1), SLOTS.div_ceil(slots.len().max(1)));
        slots.iter().sum::<usize>() == SLOTS
            && slots.iter().all(|slots| (min..=max).contains(slots))
    }

    fn step(&mut self) {
        self.cost.steps += 1;
        self.now = self.now.plus(STEP);
        let before = self.etcd.revision();
        for (number, call, request) in std::mem::take(&mut self.requests) {
            let revision = self.etcd.revision();
            let result = self.etcd.execute(self.now, &request);
            if matches!(request, Request::Commit(_)) {
                let has_written = self.etcd.revision() > revision;
                self.cost.commits += u64::from(has_written);
                self.cost.conflicts += u64::from(!has_written);
            }
            if let Some(process) = &mut self.processes[number] {
                process.inputs.push(Input::Response { call, result });
            }
        }
        self.etcd.expire(self.now);
        for change in self.etcd.changes(before + 1).unwrap_or_default() {
            self.cost.watch_bytes += match &change {
                Change::Put(key) => key.key.len() + key.value.len(),
                Change::Deleted { key, .. } => key.len(),
            } as u64;
        }
        (0..self.processes.len()).for_each(|number| self.advance(number));
    }

    /// Passes to a member what has arrived.
    fn advance(&mut self, number: usize) {
        let Some(process) = &mut self.processes[number] else { return };
        let mut inputs = std::mem::take(&mut process.inputs);
        if let Some((watch, from)) = process.watch
            && from <= self.etcd.revision()
        {
            let revision = self.etcd.revision();
            let changes = self.etcd.changes(from).unwrap_or_default();
            process.watch = Some((watch, revision + 1));
            inputs.push(Input::Changes { watch, revision, changes });
        }
        if inputs.is_empty() && process.wake <= self.now {
            inputs.push(Input::Tick);
        }
        for input in inputs {
            process.member.handle(self.now, input);
        }
        while let Some(output) = process.member.next_output() {
            match output {
                Output::Call { call, request, .. } => self.requests.push((number, call, request)),
                Output::Watch { watch, from } => process.watch = Some((watch, from)),
                Output::Event(Event::Gained { slots, items }) => {
                    process.slots += slots.len();
                    let has_moved = items != Items::Kept;
                    self.cost.moved_slots += if has_moved { slots.len() } else { 0 };
                }
                Output::Event(Event::Lost { slots }) => process.slots -= slots.len(),
                Output::Event(Event::MoveOut { transfer, .. }) => {
                    process.inputs.push(Input::MoveFinished { transfer });
                }
                _ => {}
            }
        }
        process.wake = process.member.wake_at();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_of_twenty_settles_after_each_change() {
        let mut simulation = Simulation::new();
        (0..20).for_each(|number| simulation.start(number));
        let start = simulation.settle();
        assert_eq!(start.moved_slots, SLOTS);
        assert!(start.steps < 300, "{start:?}");
        simulation.start(20);
        let join = simulation.settle();
        assert_eq!(join.moved_slots, SLOTS / 21);
        simulation.kill(3);
        let death = simulation.settle();
        assert!((780..=781).contains(&death.moved_slots), "{death:?}");
        assert!(death.steps < 1000, "{death:?}");
        for number in [0, 1, 2] {
            simulation.start(number);
            simulation.run(50);
        }
        let restarts = simulation.settle();
        assert_eq!(restarts.moved_slots, 0, "the nodes keep their slots and items");
        assert!(simulation.owners().iter().all(Option::is_some));
        assert_eq!(simulation.slots().len(), 20);
        assert!(simulation.map_bytes() > 0);
    }
}
