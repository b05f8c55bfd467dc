//! Nodes that serve without a lease while etcd cannot be reached.

use crate::history;
use crate::world::World;
use nuthatch_cluster::member::{Command, Items};
use nuthatch_cluster::memory_etcd::MemoryEtcd;
use nuthatch_cluster::node::Participation::Active;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SLOTS;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// More than a lease.
const LONG: Duration = Duration::from_mins(1);

fn start(world: &mut World, number: u32) {
    world.start_with(number, Active, |config| config.serves_without_etcd = true);
}

/// Starts three nodes that serve without etcd.
fn three(seed: u64) -> World {
    let mut world = World::new(seed);
    (0..3).for_each(|number| start(&mut world, number));
    world.run(SECOND * 3);
    world
}

/// Lets a node be without etcd for a while.
fn cut(world: &mut World, number: u32, time: Duration) {
    let until = world.now.plus(time);
    world.process(number).cut_until = until;
}

/// Lets all nodes be without etcd for a while. Its leases do not end meanwhile.
fn stop_etcd(world: &mut World, time: Duration) {
    (0..3).for_each(|number| cut(world, number, time));
    world.etcd.restart(world.now.plus(time));
}

/// Returns whether each node is permitted to serve, and whether it has a lease.
fn permits(world: &World) -> Vec<(bool, bool)> {
    let permits = world.processes.values();
    permits.map(|it| (it.is_permitted(world.now), it.has_lease(world.now))).collect()
}

fn counts(world: &World) -> Vec<usize> {
    world.processes.values().map(|process| process.serving.len()).collect()
}

const WITH_LEASE: (bool, bool) = (true, true);
const WITHOUT_LEASE: (bool, bool) = (true, false);
const NONE: (bool, bool) = (false, false);

/// All reads are of the last write, since no slot has changed its owner.
#[test]
fn nodes_serve_on_without_an_etcd() {
    let mut world = three(1);
    stop_etcd(&mut world, LONG);
    for _ in 0..50 {
        world.run(SECOND);
        assert!(permits(&world).iter().all(|(is_permitted, _)| *is_permitted));
    }
    assert_eq!(permits(&world), [WITHOUT_LEASE; 3]);
    world.run(LONG);
    assert_eq!(permits(&world), [WITH_LEASE; 3]);
    assert_eq!(counts(&world), [5462, 5461, 5461]);
    assert_eq!(history::check(&world.etcd.history), SLOTS, "no slot has another owner");
    assert_eq!(world.process(1).permit.losses(), 0);
}

#[test]
fn a_node_without_etcd_gives_slots_up_when_it_learns_of_their_owners() {
    let mut world = three(2);
    world.has_double_owners = true;
    cut(&mut world, 1, LONG);
    world.run(SECOND * 59);
    assert_eq!(permits(&world), [WITH_LEASE, WITHOUT_LEASE, WITH_LEASE]);
    assert_eq!(counts(&world), [8192, 5461, 8192]);
    while !world.process(1).serving.is_empty() {
        world.run(Duration::from_millis(5));
    }
    // It is not registered yet when it loses etcd again.
    assert_eq!(permits(&world)[1], NONE);
    cut(&mut world, 1, LONG);
    world.has_double_owners = false;
    world.run(SECOND * 30);
    assert_eq!(counts(&world)[1], 0);
    world.run(LONG * 2);
    assert_eq!(permits(&world), [WITH_LEASE; 3]);
    assert_eq!(counts(&world), [5462, 5461, 5461]);
    assert_eq!(world.process(1).gained.get(&Items::Kept), None, "items are dropped or received");
    history::check(&world.etcd.history);
}

#[test]
fn a_node_serves_nothing_without_etcd_before_it_has_had_a_lease() {
    let mut world = three(3);
    stop_etcd(&mut world, LONG);
    world.run(SECOND * 5);
    start(&mut world, 1);
    cut(&mut world, 1, SECOND * 55);
    world.run(SECOND * 54);
    assert_eq!(permits(&world), [WITHOUT_LEASE, NONE, WITHOUT_LEASE]);
}

#[test]
fn a_stopped_node_serves_nothing_before_it_has_found_that_etcd_is_away() {
    let mut world = three(4);
    let (now, id) = (world.now, NodeId::numbered(1));
    stop_etcd(&mut world, LONG);
    world.process(1).stopped_until = now.plus(SECOND * 30);
    world.run(SECOND * 31);
    assert!(!world.processes[&id].is_permitted(world.now));
    world.run(SECOND * 2);
    assert_eq!(permits(&world), [WITHOUT_LEASE; 3]);
}

#[test]
fn nodes_serve_nothing_without_a_lease_if_etcd_has_lost_its_data_or_they_have_left() {
    let mut world = three(5);
    world.command(2, Command::Forget(NodeId::numbered(1)));
    world.run(Duration::from_millis(100));
    assert!(world.process(1).member.lease().is_none());
    (1..3).for_each(|number| cut(&mut world, number, LONG));
    world.command(2, Command::Leave);
    world.etcd = MemoryEtcd::default();
    world.run(SECOND * 5);
    assert_eq!(permits(&world), [NONE; 3]);
    assert!(world.process(0).problems[0].contains("has lost data"));
    let end = world.now.plus(LONG);
    world.process(0).cut_until = end;
    world.run(SECOND * 50);
    assert_eq!(permits(&world), [NONE; 3]);
}

/// The last step of a move would leave its slots without an owner until etcd answers.
#[test]
fn slots_that_move_are_served_on_without_an_etcd() {
    let mut world = three(6);
    world.sending_time = SECOND * 5;
    world.command(1, Command::Drain);
    while !world.process(1).is_moving() {
        world.run(Duration::from_millis(1));
    }
    stop_etcd(&mut world, LONG);
    world.run(SECOND * 59);
    assert_eq!(counts(&world).iter().sum::<usize>(), SLOTS);
    world.run(LONG * 3);
    assert_eq!(counts(&world)[1], 0);
    assert_eq!(counts(&world).iter().sum::<usize>(), SLOTS);
}
