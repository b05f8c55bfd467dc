//! Members, an etcd and a network in one deterministic schedule.

use crate::keys;
use nuthatch_cluster::boot_clock::BootTime;
use nuthatch_cluster::lease::Permit;
use nuthatch_cluster::map::{SlotMap, SlotState};
use nuthatch_cluster::member::{Command, Event, Held, Input, Items, Member, MemberConfig, Output};
use nuthatch_cluster::memory_etcd::MemoryEtcd;
use nuthatch_cluster::node::{Addresses, Node, Participation};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::request::Request;
use nuthatch_cluster::slot::{SLOTS, SlotSet};
use nuthatch_testing::random::Random;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A process with a member, and the cache server that it belongs to.
pub(crate) struct Process {
    pub(crate) member: Member,
    /// Differs for each process, so that messages to a former one are lost.
    run: u64,
    /// How much the clock of its machine is ahead of the world's.
    offset: Duration,
    pub(crate) permit: Permit,
    pub(crate) serving: SlotSet,
    /// For each slot the number of the write that its item contains; 0 without an item.
    pub(crate) items: Vec<u64>,
    watch: Option<(u64, i64)>,
    /// The member is woken at this time.
    wake: BootTime,
    /// The process is stopped until then.
    pub(crate) stopped_until: BootTime,
    /// No message reaches etcd, or comes from it, until then.
    pub(crate) cut_until: BootTime,
    moves: BTreeMap<u64, (SlotSet, NodeId)>,
    /// Slots of transfers whose items are all at the target.
    sealed: BTreeMap<u64, SlotSet>,
    /// Slots whose items the server accepts from their owners.
    incoming: SlotSet,
    pub(crate) map: Arc<SlotMap>,
    pub(crate) drained: u32,
    /// The leases that it has got, also before it was registered.
    pub(crate) granted: Vec<i64>,
    /// The lease of the next process, once this one has stopped.
    pub(crate) stopped: Option<i64>,
    pub(crate) gained: BTreeMap<Items, usize>,
    pub(crate) problems: Vec<String>,
    pub(crate) ended_problems: Vec<String>,
}

impl Process {
    /// Returns how much its clock is ahead of the world's.
    pub(crate) fn offset(&self) -> Duration {
        self.offset
    }

    /// Returns whether the node is permitted to serve at this time of the world.
    pub(crate) fn is_permitted(&self, now: BootTime) -> bool {
        self.permit.holds(now.plus(self.offset))
    }

    /// Returns whether a lease covers this time of the world.
    pub(crate) fn has_lease(&self, now: BootTime) -> bool {
        self.permit.holds_lease(now.plus(self.offset))
    }

    /// Returns what a process that keeps items stores for the next one.
    pub(crate) fn held(&self) -> Held {
        Held { data: self.member.data().unwrap_or_default(), slots: self.member.held().collect() }
    }

    /// Returns whether items are sent to another node.
    pub(crate) fn is_moving(&self) -> bool {
        !self.moves.is_empty()
    }

    /// Returns whether the member will register by itself.
    pub(crate) fn is_waiting(&self) -> bool {
        self.member.wake_at() < BootTime::from_nanos(u64::MAX)
    }
}

enum Message {
    Request { call: u64, request: Request },
    Input(Input),
}

pub(crate) struct World {
    pub(crate) now: BootTime,
    pub(crate) random: Random,
    pub(crate) etcd: MemoryEtcd,
    pub(crate) processes: BTreeMap<NodeId, Process>,
    messages: BTreeMap<(BootTime, u64), (NodeId, u64, Message)>,
    last_message: u64,
    /// One of this many messages is lost; 0 for none.
    pub(crate) loss: u64,
    pub(crate) max_delay: Duration,
    pub(crate) max_moving_slots: usize,
    /// How long items are sent, beside a random delay.
    pub(crate) sending_time: Duration,
    /// A node to which no items can be sent.
    pub(crate) refusing: Option<NodeId>,
    /// Whether nodes that serve without a lease may serve slots of others.
    pub(crate) has_double_owners: bool,
    /// The number of the last write of each slot.
    written: Vec<u64>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: BootTime::default().plus(Duration::from_secs(1000)),
            random: Random::new(seed),
            etcd: MemoryEtcd::default(),
            processes: BTreeMap::new(),
            messages: BTreeMap::new(),
            last_message: 0,
            loss: 0,
            max_delay: Duration::from_millis(20),
            max_moving_slots: 1024,
            sending_time: Duration::ZERO,
            refusing: None,
            has_double_owners: false,
            written: vec![0; SLOTS],
        }
    }

    /// Starts a process for a new node, or for a node whose process has ended.
    pub(crate) fn start(&mut self, number: u32, participation: Participation) {
        self.start_with(number, participation, |_| {});
    }

    pub(crate) fn start_with(
        &mut self,
        number: u32,
        participation: Participation,
        configure: impl FnOnce(&mut MemberConfig),
    ) {
        let id = NodeId::numbered(number);
        let node = Node { participation, ..Node::new(id, Addresses::default()) };
        let mut config = MemberConfig::new(keys(), node);
        config.max_moving_slots = self.max_moving_slots;
        configure(&mut config);
        self.last_message += 1;
        let process = Process {
            member: Member::new(config),
            run: self.last_message,
            offset: Duration::from_millis(self.random.below(1_000_000)),
            permit: Permit::default(),
            serving: SlotSet::new(),
            items: vec![0; SLOTS],
            watch: None,
            wake: self.now,
            stopped_until: self.now,
            cut_until: self.now,
            moves: BTreeMap::new(),
            sealed: BTreeMap::new(),
            incoming: SlotSet::new(),
            map: Arc::new(SlotMap::empty()),
            drained: 0,
            granted: Vec::new(),
            stopped: None,
            gained: BTreeMap::new(),
            problems: Vec::new(),
            ended_problems: Vec::new(),
        };
        self.processes.insert(id, process);
    }

    pub(crate) fn process(&mut self, number: u32) -> &mut Process {
        self.processes.get_mut(&NodeId::numbered(number)).expect("a process")
    }

    pub(crate) fn command(&mut self, number: u32, command: Command) {
        self.send(NodeId::numbered(number), Message::Input(Input::Command(command)));
    }

    /// Runs the schedule for a while.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while let Some(next) = self.next_time().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            self.etcd.expire(self.now);
            self.report_changes();
            self.step();
            self.check_owners();
            self.request();
        }
        self.now = end;
    }

    /// Returns when the next message arrives or the next member wants to be woken.
    fn next_time(&self) -> Option<BootTime> {
        let arrival = self.messages.keys().next().map(|(at, _)| *at);
        let wakes = self.processes.values().map(|process| process.wake.max(process.stopped_until));
        arrival.into_iter().chain(wakes).min()
    }

    fn step(&mut self) {
        while let Some(entry) =
            self.messages.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let (id, run, message) = entry.remove();
            let Some(process) = self.processes.get(&id).filter(|process| process.run == run) else {
                continue;
            };
            match message {
                Message::Request { call, request } => {
                    let result = self.etcd.execute(self.now, &request);
                    self.send(id, Message::Input(Input::Response { call, result }));
                }
                Message::Input(_) if self.now < process.stopped_until => {
                    // It is in the socket, and read when the process continues.
                    let at = process.stopped_until;
                    self.last_message += 1;
                    self.messages.insert((at, self.last_message), (id, run, message));
                }
                Message::Input(input) => self.handle(id, input),
            }
        }
        let is_due = |(id, process): (&NodeId, &Process)| {
            (process.wake.max(process.stopped_until) <= self.now).then_some(*id)
        };
        let due: Vec<NodeId> = self.processes.iter().filter_map(is_due).collect();
        for id in due {
            self.handle(id, Input::Tick);
        }
    }

    /// Sends a message with a random delay, or loses it.
    fn send(&mut self, id: NodeId, message: Message) {
        let Some(process) = self.processes.get(&id) else { return };
        let is_local = matches!(
            &message,
            Message::Input(
                Input::Command(_) | Input::MoveFinished { .. } | Input::MoveFailed { .. }
            )
        );
        let is_lost = self.loss > 0 && self.random.below(self.loss) == 0;
        if !is_local && (is_lost || self.now < process.cut_until) {
            return;
        }
        let run = process.run;
        let nanos = self.random.below(self.max_delay.as_nanos() as u64) + 1;
        // Some requests are very late: their sender has given up long ago.
        let is_late = self.loss > 0 && self.random.below(30) == 0;
        let mut delay = Duration::from_nanos(nanos);
        if is_late {
            delay += Duration::from_secs(3);
        }
        if let Message::Input(Input::MoveFinished { .. }) = &message {
            delay += self.sending_time;
        }
        self.last_message += 1;
        let at = (self.now.plus(delay), self.last_message);
        self.messages.insert(at, (id, run, message));
    }

    /// Sends changes of etcd to the watches. A watch is a stream: its messages arrive in order, and
    /// a lost one is sent again when the client has connected anew.
    fn report_changes(&mut self) {
        let revision = self.etcd.revision();
        let ids: Vec<NodeId> = self.processes.keys().copied().collect();
        for id in ids {
            let process = self.processes.get_mut(&id).expect("a process");
            let Some((watch, from)) = process.watch.filter(|(_, from)| *from <= revision) else {
                continue;
            };
            // Reported when the partition and the stop are over.
            if self.now < process.cut_until || self.now < process.stopped_until {
                continue;
            }
            // Some are reported later, together with others.
            if self.random.below(4) == 0 {
                process.wake = process.wake.min(self.now.plus(Duration::from_millis(5)));
                continue;
            }
            process.watch = Some((watch, revision + 1));
            let input = match self.etcd.changes(from) {
                Some(changes) => Input::Changes { watch, revision, changes },
                None => Input::WatchFailed { watch },
            };
            self.handle(id, input);
        }
    }

    fn handle(&mut self, id: NodeId, mut input: Input) {
        if let Input::MoveFinished { transfer } = input
            && !self.seal(id, transfer)
        {
            input = Input::MoveFailed { transfer };
        }
        let Some(process) = self.processes.get_mut(&id) else { return };
        let now = self.now.plus(process.offset);
        process.member.handle(now, input);
        while let Some(output) = self.processes.get_mut(&id).and_then(|p| p.member.next_output()) {
            match output {
                Output::Call { call, request, .. } => {
                    self.send(id, Message::Request { call, request });
                }
                Output::Watch { watch, from } => self.process_of(id).watch = Some((watch, from)),
                Output::Permit(until) => self.process_of(id).permit.set(until),
                Output::PermitWithoutLease(until) => {
                    self.process_of(id).permit.extend_without_lease(until);
                }
                Output::Event(event) => self.event(id, event),
            }
        }
        let now = self.now;
        let process = self.process_of(id);
        process.wake = process.member.wake_at().minus(process.offset);
        let is_busy = process.wake <= now;
        assert!(!is_busy, "{id} wants to be woken at once, again and again");
    }

    fn process_of(&mut self, id: NodeId) -> &mut Process {
        self.processes.get_mut(&id).expect("a process")
    }

    fn event(&mut self, id: NodeId, event: Event) {
        let process = self.process_of(id);
        match event {
            Event::Gained { slots, items } => {
                if items == Items::Dropped {
                    slots.iter().for_each(|slot| process.items[usize::from(slot)] = 0);
                }
                *process.gained.entry(items).or_default() += slots.len();
                assert!(!process.serving.intersects(&slots), "{id} serves {slots} already");
                process.serving.add(&slots);
            }
            Event::Lost { slots } => process.serving.subtract(&slots),
            Event::Incoming { slots, .. } => {
                process.incoming.add(&slots);
                slots.iter().for_each(|slot| process.items[usize::from(slot)] = 0);
            }
            Event::MoveOut { transfer, slots, target } => {
                self.transfer(id, transfer, slots, target);
            }
            Event::MoveCancelled { transfer } => {
                // Slots that the member has sealed stay so until they are gained again.
                process.moves.remove(&transfer);
                if let Some(slots) = process.sealed.remove(&transfer) {
                    process.serving.add(&slots.common(process.member.serving()));
                }
            }
            Event::MapChanged(map) => {
                assert!(map.revision() >= process.map.revision(), "the map went back");
                let is_incoming = |slot: &u16| {
                    let state = map.ownership(*slot).map(|ownership| ownership.state);
                    state == Some(SlotState::Moving(id))
                };
                process.incoming = process.incoming.iter().filter(is_incoming).collect();
                process.map = map;
            }
            Event::Drained => process.drained += 1,
            Event::Stopped { lease } => process.stopped = Some(lease),
            Event::LeaseGranted { lease } => process.granted.push(lease),
            Event::Problem(problem) => process.problems.push(problem),
            Event::ProblemEnded(problem) => process.ended_problems.push(problem),
        }
    }

    /// Lets a transfer end a moment later, as a server would that has sent all items.
    fn transfer(&mut self, id: NodeId, transfer: u64, slots: SlotSet, target: NodeId) {
        let is_refused = self.refusing == Some(target);
        let fails = is_refused || self.loss > 0 && self.random.below(4) == 0;
        self.process_of(id).moves.insert(transfer, (slots, target));
        let input =
            if fails { Input::MoveFailed { transfer } } else { Input::MoveFinished { transfer } };
        self.send(id, Message::Input(input));
    }

    /// Seals the slots of a transfer and copies their items. Returns whether the target knows of
    /// the transfer, so that it accepts them.
    fn seal(&mut self, id: NodeId, transfer: u64) -> bool {
        let process = self.process_of(id);
        let Some((slots, target)) = process.moves.remove(&transfer) else { return true };
        let items: Vec<(u16, u64)> =
            slots.iter().map(|slot| (slot, process.items[usize::from(slot)])).collect();
        let Some(target) = self.processes.get_mut(&target) else { return false };
        let is_known = slots.iter().all(|slot| target.incoming.contains(slot));
        if is_known {
            for (slot, item) in &items {
                target.items[usize::from(*slot)] = *item;
            }
            let process = self.process_of(id);
            process.serving.subtract(&slots);
            process.sealed.insert(transfer, slots);
        }
        is_known
    }

    /// Checks that no slot is served by two nodes.
    fn check_owners(&self) {
        let permitted: Vec<(&NodeId, &Process)> =
            (self.processes.iter()).filter(|(_, process)| self.counts(process)).collect();
        for (at, (id, one)) in permitted.iter().enumerate() {
            for (other_id, other) in &permitted[at + 1..] {
                let is_double = one.serving.intersects(&other.serving);
                assert!(!is_double, "{id} and {other_id} serve a slot at {:?}", self.now);
            }
        }
    }

    /// Returns whether a node is permitted to serve, and expected to be the only one.
    fn counts(&self, process: &Process) -> bool {
        process.is_permitted(self.now) && (!self.has_double_owners || process.has_lease(self.now))
    }

    /// Reads and writes some slots at the nodes that serve them. A slot stands for one key.
    fn request(&mut self) {
        let (now, mut processes) = (self.now, std::mem::take(&mut self.processes));
        for process in processes.values_mut() {
            if process.stopped_until > now || !self.counts(process) {
                continue;
            }
            let random = &mut self.random;
            for _ in 0..8 {
                let slot = random.below(SLOTS as u64) as u16;
                if !process.serving.contains(slot) {
                    continue;
                }
                let item = &mut process.items[usize::from(slot)];
                let written = &mut self.written[usize::from(slot)];
                assert!(*item == 0 || *item == *written, "a stale read of slot {slot} at {now:?}");
                if random.below(2) == 0 {
                    *written += 1;
                    *item = *written;
                }
            }
        }
        self.processes = processes;
    }
}
