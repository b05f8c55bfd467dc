//! How a cluster without faults forms and changes.

use crate::history;
use crate::world::World;
use nuthatch_cluster::member::{Command, Data, Items};
use nuthatch_cluster::node::Participation::{Active, Waiting};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::{SLOTS, SlotSet};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Starts three nodes together.
fn three() -> World {
    let mut world = World::new(1);
    (0..3).for_each(|number| world.start(number, Active));
    world.run(SECOND * 3);
    world
}

fn counts(world: &World) -> Vec<usize> {
    world.processes.values().map(|process| process.serving.len()).collect()
}

#[track_caller]
fn all_served(world: &World) {
    let mut all = SlotSet::new();
    world.processes.values().for_each(|process| all.add(&process.serving));
    assert_eq!(all, SlotSet::all());
    history::check(&world.etcd.history);
}

#[test]
fn nodes_that_start_together_share_the_slots_within_seconds() {
    let mut world = three();
    assert_eq!(counts(&world), [5462, 5461, 5461]);
    all_served(&world);
    let ranges = world.process(1).serving.ranges().count();
    assert_eq!(ranges, 1, "a node has adjacent slots");
    // All slots were claimed, and none has moved since.
    assert_eq!(history::check(&world.etcd.history), SLOTS);
}

#[test]
fn a_later_node_takes_its_part_with_its_items() {
    let mut world = three();
    world.start(3, Active);
    world.run(SECOND * 30);
    assert_eq!(counts(&world), [4096; 4]);
    all_served(&world);
    assert_eq!(world.process(3).gained.get(&Items::Received), Some(&4096));
    assert_eq!(world.process(3).gained.get(&Items::Dropped), None);
}

/// The planned target of the first slot was chosen again and again, so no other node got slots, and
/// a node that drained lost its items.
#[test]
fn a_node_that_cannot_take_slots_does_not_stop_moves_to_others() {
    let mut world = World::new(1);
    world.start(5, Active);
    world.run(SECOND * 3);
    world.refusing = Some(NodeId::numbered(0));
    world.start(0, Active);
    world.start(7, Active);
    world.run(SECOND * 30);
    assert_eq!(world.process(7).serving.len(), 5461);
    assert_eq!(world.process(0).serving.len(), 0);
    world.command(5, Command::Drain);
    world.run(SECOND * 30);
    assert_eq!(world.process(5).drained, 1);
    assert_eq!(world.process(7).serving.len(), SLOTS);
    // It is tried again.
    world.refusing = None;
    world.run(SECOND * 60);
    assert_eq!(counts(&world), [8192, 0, 8192]);
    all_served(&world);
}

#[test]
fn a_waiting_node_takes_its_part_when_it_joins() {
    let mut world = three();
    world.start(3, Waiting);
    world.run(SECOND * 30);
    assert_eq!(counts(&world), [5462, 5461, 5461, 0]);
    world.command(3, Command::Join);
    world.run(SECOND * 30);
    assert_eq!(counts(&world), [4096; 4]);
}

#[test]
fn slots_of_a_node_that_died_have_other_owners_within_ten_seconds() {
    let mut world = three();
    world.processes.remove(&NodeId::numbered(1));
    world.run(SECOND * 10);
    assert_eq!(counts(&world), [8192; 2]);
    all_served(&world);
    // Only the slots of the dead node have changed.
    assert_eq!(history::check(&world.etcd.history), SLOTS + 5461);
}

#[test]
fn a_node_that_drains_moves_all_slots_away() {
    let mut world = three();
    world.command(1, Command::Drain);
    world.run(SECOND * 60);
    assert_eq!(counts(&world), [8192, 0, 8192]);
    all_served(&world);
    assert_eq!(world.process(1).drained, 1);
    let mut received = 0;
    for number in [0, 2] {
        received += world.process(number).gained.get(&Items::Received).copied().unwrap_or(0);
    }
    assert_eq!(received, 5461);
}

#[test]
fn a_node_that_leaves_is_replaced_at_once() {
    let mut world = three();
    world.command(2, Command::Leave);
    world.run(SECOND * 2);
    assert_eq!(counts(&world)[..2], [8192; 2]);
    let permit = world.process(2).permit.until();
    assert_eq!(permit.nanos(), 0);
}

#[test]
fn a_forgotten_node_ends_its_permit_before_others_take_its_slots() {
    let mut world = three();
    world.command(0, Command::Forget(NodeId::numbered(1)));
    world.run(SECOND * 2);
    assert_eq!(counts(&world), [8192, 0, 8192]);
    all_served(&world);
    // It did not own its slots again meanwhile, and moved none.
    assert_eq!(world.process(0).gained.get(&Items::Received), None);
    assert!(world.process(1).problems[0].contains("nuthatch cluster forget"));
    assert_eq!(world.process(1).permit.losses(), 1);
    world.run(SECOND * 30);
    assert_eq!(counts(&world), [8192, 0, 8192]);
    // It has a lease again, and waits.
    assert!(world.process(1).permit.until().nanos() > 0);
    world.command(1, Command::Join);
    world.run(SECOND * 60);
    assert_eq!(counts(&world), [5462, 5461, 5461]);
    // A node can be requested to forget itself.
    world.command(1, Command::Forget(NodeId::numbered(1)));
    world.run(SECOND * 5);
    assert_eq!(counts(&world), [8192, 0, 8192]);
    world.command(1, Command::Forget(NodeId::numbered(9)));
    world.run(SECOND);
    let problem = world.process(1).problems.pop().expect("a problem");
    assert!(problem.ends_with("is unknown, and not forgotten"), "{problem}");
}

/// Restarts a node with its items and its lease.
fn restart(world: &mut World, number: u32, pause: Duration) {
    let process = world.process(number);
    let (held, lease) = (process.held(), process.member.lease());
    world.processes.remove(&NodeId::numbered(number));
    world.run(pause);
    world.start_with(number, Active, |config| {
        config.held = held;
        config.previous_leases = lease.into_iter().collect();
    });
    world.run(SECOND * 3);
}

#[test]
fn a_node_that_restarts_keeps_its_slots_and_items() {
    let mut world = three();
    restart(&mut world, 1, SECOND * 2);
    assert_eq!(counts(&world), [5462, 5461, 5461]);
    assert_eq!(world.process(1).gained.get(&Items::Kept), Some(&5461));
    assert_eq!(history::check(&world.etcd.history), SLOTS, "no owner has changed");
}

/// Stops a node for at most `wait`, and starts it again after `pause`. Returns how many slots it
/// has kept.
fn stop_and_start(wait: Duration, pause: Duration) -> Option<usize> {
    let mut world = three();
    let lease = world.process(1).member.lease();
    world.command(1, Command::Stop(wait));
    world.run(SECOND);
    let now = world.now;
    assert!(!world.process(1).is_permitted(now));
    let (held, stopped) = (world.process(1).held(), world.process(1).stopped);
    world.processes.remove(&NodeId::numbered(1));
    world.run(pause);
    world.start_with(1, Active, |config| {
        config.held = held;
        config.previous_leases = stopped.or(lease).into_iter().collect();
    });
    world.run(SECOND);
    world.process(1).gained.get(&Items::Kept).copied()
}

#[test]
fn slots_wait_for_a_node_that_has_stopped() {
    assert_eq!(stop_and_start(Duration::ZERO, SECOND * 2), Some(5461));
    assert_eq!(stop_and_start(SECOND * 30, SECOND * 20), Some(5461));
    assert_eq!(stop_and_start(SECOND * 30, SECOND * 40), None);
}

#[test]
fn a_stopped_node_can_be_forgotten_and_gets_no_slots() {
    let mut world = three();
    world.command(1, Command::Stop(SECOND * 60));
    world.run(SECOND);
    world.command(2, Command::Drain);
    world.run(SECOND * 5);
    assert_eq!(counts(&world), [10_923, 5461, 0], "no slots move to the stopped node");
    world.command(2, Command::Forget(NodeId::numbered(1)));
    world.run(SECOND * 5);
    assert_eq!(world.process(0).serving.len(), SLOTS);
}

/// Its key may be bound to the lease of the last process, or to that of the one before.
#[test]
fn a_node_that_ends_at_any_moment_of_its_start_keeps_its_slots() {
    for step in 0..40 {
        let mut world = three();
        world.command(1, Command::Stop(SECOND * 60));
        world.run(SECOND);
        let held = world.process(1).held();
        let mut leases: Vec<i64> = world.process(1).stopped.into_iter().collect();
        let mut start = |world: &mut World, pause| {
            let (held, previous) = (held.clone(), leases.clone());
            world.start_with(1, Active, |config| {
                config.held = held;
                config.previous_leases = previous;
            });
            world.run(pause);
            leases.append(&mut world.process(1).granted);
        };
        start(&mut world, Duration::from_millis(step * 5));
        start(&mut world, SECOND * 2);
        assert_eq!(world.process(1).gained.get(&Items::Kept), Some(&5461), "after step {step}");
        assert_eq!(history::check(&world.etcd.history), SLOTS, "no owner has changed");
    }
}

/// The slots of a node that dies do not go to one that has stopped.
#[test]
fn a_stopped_node_claims_no_slots() {
    let mut world = three();
    world.command(1, Command::Stop(SECOND * 60));
    world.run(SECOND);
    world.processes.remove(&NodeId::numbered(2));
    world.run(SECOND * 15);
    assert_eq!(world.process(0).serving.len(), 10_923);
}

#[test]
fn a_node_stops_also_without_etcd() {
    let mut world = three();
    let until = world.now.plus(SECOND * 60);
    world.process(1).cut_until = until;
    world.run(SECOND * 10);
    world.process(0).cut_until = until;
    for number in [0, 1] {
        world.command(number, Command::Stop(SECOND * 30));
    }
    // The timeout of a request.
    world.run(SECOND * 3);
    for number in [0, 1] {
        let process = world.process(number);
        assert!(process.member.has_left() && process.stopped.is_none());
    }
}

#[test]
fn a_node_that_restarts_late_keeps_no_items_that_another_node_has_served() {
    let mut world = three();
    restart(&mut world, 1, SECOND * 12);
    world.run(SECOND * 60);
    assert_eq!(counts(&world).iter().sum::<usize>(), SLOTS);
    assert_eq!(world.process(1).gained.get(&Items::Kept), None);
    all_served(&world);
}

#[test]
fn a_node_alone_keeps_its_items_while_no_other_node_served_them() {
    let mut world = World::new(2);
    world.start(0, Active);
    world.run(SECOND * 3);
    // The lease ends, and no other node takes the slots.
    restart(&mut world, 0, SECOND * 100);
    assert_eq!(world.process(0).gained.get(&Items::Kept), Some(&SLOTS));
}

#[test]
fn a_node_keeps_no_items_of_other_data_in_etcd() {
    let kept = |change: fn(&mut Data)| {
        let mut world = World::new(3);
        world.start(0, Active);
        world.run(SECOND * 3);
        let mut held = world.process(0).held();
        change(&mut held.data);
        world.processes.clear();
        // The lease of the first process ends meanwhile.
        world.start_with(0, Active, |config| config.held = held);
        world.run(SECOND * 15);
        assert_eq!(counts(&world), [SLOTS]);
        let process = world.process(0);
        let warnings = process.problems.iter().filter(|it| it.contains("has other data"));
        (process.gained.get(&Items::Kept).copied(), warnings.count())
    };
    assert_eq!(kept(|_| {}), (Some(SLOTS), 0));
    assert_eq!(kept(|data| data.identity.push('2')), (None, 1));
    // etcd was restored from a backup.
    assert_eq!(kept(|data| data.revision += 1000), (None, 1));
}

#[test]
fn a_second_process_with_one_identifier_waits() {
    let mut world = three();
    let first = world.processes.remove(&NodeId::numbered(1)).expect("a process");
    world.start(1, Active);
    world.run(SECOND);
    let problem = world.process(1).problems.first().cloned().expect("a problem");
    assert!(problem.contains("is registered with the lease"), "{problem}");
    assert!(world.process(1).serving.is_empty());
    // The lease of the first one ends, since it is not kept alive.
    drop(first);
    world.run(SECOND * 12);
    let process = world.process(1);
    assert!(!process.serving.is_empty());
    // The member looked every second.
    assert_eq!(process.problems.len(), 1);
    assert_eq!(process.ended_problems, process.problems);
}

#[test]
fn a_stopped_node_does_not_serve_when_it_continues() {
    let mut world = three();
    let now = world.now;
    world.process(1).stopped_until = now.plus(SECOND * 60);
    world.run(SECOND * 59);
    let process = world.process(1);
    assert_eq!(process.serving.len(), 5461, "it does not know yet that it has lost them");
    let offset = process.offset();
    assert!(!process.permit.holds(now.plus(SECOND * 59).plus(offset)));
    assert_eq!(counts(&world), [8192, 5461, 8192]);
    world.run(SECOND * 30);
    assert_eq!(counts(&world).iter().sum::<usize>(), SLOTS);
    all_served(&world);
}

#[test]
fn a_watch_continues_after_a_compaction() {
    let mut world = three();
    let now = world.now;
    world.process(0).cut_until = now.plus(SECOND * 2);
    world.command(2, Command::Drain);
    world.run(SECOND);
    world.etcd.compacted = world.etcd.revision();
    world.run(SECOND * 60);
    assert_eq!(counts(&world), [8192, 8192, 0]);
    all_served(&world);
}

#[test]
fn a_group_that_cannot_be_read_is_reported_and_left_alone() {
    use nuthatch_cluster::request::{Request, Txn, Write};
    let mut world = three();
    let key = crate::keys().group(0);
    let writes = vec![Write::Put { key: key.clone(), value: "garbage".into(), lease: 0 }];
    let request = Request::Commit(Txn { compares: Vec::new(), writes });
    let now = world.now;
    world.etcd.execute(now, &request).expect("a response");
    world.run(SECOND * 5);
    let problem = world.process(2).problems.first().cloned().expect("a problem");
    let expected = "etcd key /nuthatch/test/slots/00: line 1: expected FIRST-LAST OWNER EPOCH";
    assert!(problem.starts_with(expected), "{problem}");
    assert_eq!(counts(&world).iter().sum::<usize>(), SLOTS - 64);
    // Other slots move as before.
    world.command(0, Command::Drain);
    world.run(SECOND * 60);
    assert_eq!(world.process(0).drained, 1);
    assert_eq!(counts(&world).iter().sum::<usize>(), SLOTS - 64);
    let request = Request::Commit(Txn { compares: Vec::new(), writes: vec![Write::Delete(key)] });
    let now = world.now;
    world.etcd.execute(now, &request).expect("a response");
    world.run(SECOND * 5);
    assert_eq!(world.process(2).problems.len(), 1);
    assert_eq!(world.process(2).ended_problems.len(), 1);
    assert_eq!(counts(&world).iter().sum::<usize>(), SLOTS);
}
