//! etcd that has lost the data of the cluster, or was restored from a backup.

use crate::world::World;
use nuthatch_cluster::memory_etcd::MemoryEtcd;
use nuthatch_cluster::node::Participation::Active;
use nuthatch_cluster::request::{Change, Request, Txn, Write};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// More than a lease.
const LONG: Duration = Duration::from_secs(20);

#[track_caller]
fn serves_nothing(world: &mut World, number: u32) {
    let now = world.now;
    let process = world.process(number);
    let local = now.plus(process.offset());
    assert!(!process.permit.holds(local), "node {number} has a permit");
    let problems: Vec<_> = process.problems.iter().filter(|it| it.contains("lost data")).collect();
    assert_eq!(problems.len(), 1, "{:?}", process.problems);
    assert_eq!(process.ended_problems.iter().filter(|it| it.contains("lost data")).count(), 0);
}

#[test]
fn nodes_serve_nothing_after_etcd_has_lost_its_data() {
    let mut world = World::new(1);
    (0..2).for_each(|number| world.start(number, Active));
    world.run(SECOND * 3);
    world.etcd = MemoryEtcd::default();
    world.run(LONG);
    (0..2).for_each(|number| serves_nothing(&mut world, number));
    assert!(world.etcd.history.is_empty(), "nodes write nothing");
}

/// Two nodes served one slot: the old one knew owners that the new etcd does not have.
#[test]
fn a_node_notices_other_data_of_a_later_revision() {
    let mut world = World::new(2);
    world.start(0, Active);
    world.run(SECOND * 3);
    let seen = world.etcd.revision();
    let until = world.now.plus(LONG * 3);
    world.process(0).cut_until = until;
    // Its permit ends.
    world.run(SECOND * 10);
    world.etcd = MemoryEtcd::default();
    for number in 1..8 {
        world.start(number, Active);
        world.run(SECOND * 5);
    }
    assert!(world.etcd.revision() > seen);
    world.run(LONG * 2);
    serves_nothing(&mut world, 0);
    assert_eq!((1..8).map(|number| world.process(number).serving.len()).sum::<usize>(), 16_384);
}

#[test]
fn nodes_serve_nothing_after_etcd_was_restored_from_a_backup() {
    let mut world = World::new(3);
    (0..2).for_each(|number| world.start(number, Active));
    world.run(SECOND * 3);
    let backup = world.etcd.clone();
    world.start(2, Active);
    world.run(LONG);
    world.etcd = backup;
    world.run(LONG);
    (0..3).for_each(|number| serves_nothing(&mut world, number));
}

#[test]
fn a_node_that_is_started_again_uses_the_new_data() {
    let mut world = World::new(4);
    world.start(0, Active);
    world.run(SECOND * 3);
    world.etcd = MemoryEtcd::default();
    world.run(LONG);
    serves_nothing(&mut world, 0);
    world.start(0, Active);
    world.run(SECOND * 3);
    assert_eq!(world.process(0).serving.len(), 16_384);
}

/// Operators delete keys that cannot be read.
#[test]
fn nodes_write_the_identity_again_if_it_was_deleted() {
    let mut world = World::new(5);
    world.start(0, Active);
    world.run(SECOND * 3);
    let identity = crate::keys().identity();
    let written = |world: &World| {
        let changes = world.etcd.history.iter();
        let is_it = |change: &&Change| match change {
            Change::Put(key) => key.key == identity,
            Change::Deleted { key, .. } => *key == identity,
        };
        changes.filter(is_it).count()
    };
    assert_eq!(written(&world), 1);
    let writes = vec![Write::Delete(identity.clone())];
    let delete = Request::Commit(Txn { compares: Vec::new(), writes });
    world.etcd.execute(world.now, &delete).expect("deleted");
    world.start(1, Active);
    world.run(SECOND * 3);
    assert_eq!(written(&world), 3, "written, deleted, and written");
    assert_eq!(world.process(0).serving.len(), 8_192);
}
