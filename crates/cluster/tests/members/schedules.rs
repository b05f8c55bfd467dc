//! Random schedules of six members, with all faults: no slot is served twice, and no client reads
//! a value that another node has overwritten.

use crate::history;
use crate::world::World;
use nuthatch_cluster::boot_clock::BootTime;
use nuthatch_cluster::member::Command;
use nuthatch_cluster::node::Participation;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SlotSet;
use std::time::Duration;

const NODES: u64 = 6;

/// Injects one fault, or lets an operator change something.
fn disturb(world: &mut World) {
    let number = world.random.below(NODES) as u32;
    let until = world.now.plus(Duration::from_millis(world.random.below(25_000)));
    let kind = world.random.below(14);
    let Some(process) = world.processes.get_mut(&NodeId::numbered(number)) else {
        return world.start(number, Participation::Active);
    };
    match kind {
        0 | 1 => process.stopped_until = until,
        2 | 3 => process.cut_until = until,
        4 => {
            world.processes.remove(&NodeId::numbered(number));
        }
        5 => restart_warm(world, number),
        6 => world.command(number, Command::Drain),
        7 => world.command(number, Command::Join),
        8 => world.command(number, Command::Leave),
        12 => {
            let wait = Duration::from_secs(world.random.below(20));
            world.command(number, Command::Stop(wait));
        }
        9 => world.etcd.former_leader_until = until,
        11 => {
            let other = world.random.below(NODES) as u32;
            world.command(number, Command::Forget(NodeId::numbered(other)));
        }
        10 => world.etcd.compacted = world.etcd.revision(),
        _ => world.etcd.restart(world.now),
    }
}

/// Ends a process and starts the next one with its items.
fn restart_warm(world: &mut World, number: u32) {
    let process = world.process(number);
    let (held, mut leases) = (process.held(), process.granted.clone());
    leases.extend(process.stopped);
    let items = process.items.clone();
    world.start_with(number, Participation::Active, |config| {
        config.held = held;
        config.previous_leases = leases;
    });
    world.process(number).items = items;
}

/// Runs a schedule. Returns the number of changes of owners.
fn run(seed: u64) -> usize {
    let mut world = World::new(seed);
    world.loss = 8 + seed % 40;
    world.max_moving_slots = if seed % 8 == 7 { 64 } else { 1024 };
    world.max_delay = Duration::from_millis([5, 100, 900][seed as usize % 3]);
    (0..NODES as u32).for_each(|number| world.start(number, Participation::Active));
    for _ in 0..25 {
        let pause = Duration::from_millis(world.random.below(6_000));
        world.run(pause);
        disturb(&mut world);
    }
    settle(&mut world);
    history::check(&world.etcd.history)
}

/// Ends all faults, and checks that the cluster recovers: every slot is served once, and all nodes
/// have equal shares.
fn settle(world: &mut World) {
    world.loss = 0;
    world.max_delay = Duration::from_millis(20);
    world.etcd.former_leader_until = BootTime::default();
    let now = world.now;
    for number in 0..NODES as u32 {
        let Some(process) = world.processes.get_mut(&NodeId::numbered(number)) else { continue };
        process.stopped_until = now;
        process.cut_until = now;
    }
    // Commands that were sent to stopped processes arrive before those below.
    world.run(Duration::from_secs(30));
    // A node that has left does not return by itself.
    world.processes.retain(|_, process| process.member.lease().is_some() || process.is_waiting());
    for number in 0..NODES as u32 {
        if world.processes.contains_key(&NodeId::numbered(number)) {
            world.command(number, Command::Join);
        } else {
            world.start(number, Participation::Active);
        }
    }
    world.run(Duration::from_mins(1));
    let mut all = SlotSet::new();
    for (id, process) in &world.processes {
        let len = process.serving.len();
        assert!((2730..=2731).contains(&len), "{id} serves {len} slots");
        assert!(process.permit.holds(world.now.plus(process.offset())), "{id} has no permit");
        all.add(&process.serving);
    }
    assert_eq!(all, SlotSet::all());
}

#[test]
fn no_slot_is_served_by_two_nodes_in_random_schedules() {
    let seeds = std::env::var("NUTHATCH_SEEDS").ok();
    let seeds: u64 = seeds.map_or(12, |seeds| seeds.parse().expect("a number"));
    let mut changes = 0;
    for seed in 0..seeds {
        let result = std::panic::catch_unwind(|| run(seed));
        changes += result.unwrap_or_else(|_| panic!("seed {seed}"));
    }
    assert!(changes > 10_000 * seeds as usize, "{changes} changes of owners");
}
