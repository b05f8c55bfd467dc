//! Checks each change of an owner in the history of etcd.

use crate::keys;
use nuthatch_cluster::map::{Group, SlotState};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::request::Change;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that an owner loses a slot only by its own transaction or without a lease, and that the
/// epoch grows with each change of the owner. Returns the number of changes of owners.
pub(crate) fn check(history: &[Change]) -> usize {
    let keys = keys();
    let group_prefix = format!("{}slots/", keys.prefix());
    let node_prefix = format!("{}nodes/", keys.prefix());
    let mut alive: BTreeSet<NodeId> = BTreeSet::new();
    let mut groups: BTreeMap<u8, Group> = BTreeMap::new();
    let mut changes = 0;
    for change in history {
        let (key, value) = match change {
            Change::Put(entry) => (&entry.key, Some(&entry.value)),
            Change::Deleted { key, .. } => (key, None),
        };
        if let Some(id) = key.strip_prefix(&node_prefix) {
            let id = id.parse().expect("an identifier");
            if value.is_some() {
                alive.insert(id);
            } else {
                alive.remove(&id);
            }
        }
        if let Some(index) = key.strip_prefix(&group_prefix) {
            let index = u8::from_str_radix(index, 16).expect("a group");
            let value = value.expect("no group is deleted");
            let group = Group::decode(index, change.revision(), value).expect("a group");
            let before = groups.get(&index).cloned().unwrap_or(Group::absent(index, 0));
            changes += check_group(&before, &group, &alive);
            groups.insert(index, group);
        }
    }
    changes
}

fn check_group(before: &Group, after: &Group, alive: &BTreeSet<NodeId>) -> usize {
    let mut changes = 0;
    for (slot, (before, after)) in before.slots().iter().zip(&after.slots()).enumerate() {
        let place = format!("slot {slot} of the group, {before:?} -> {after:?}");
        let Some(before) = before else {
            changes += usize::from(after.is_some());
            continue;
        };
        let after = after.expect("an owned slot stays owned");
        if before.owner == after.owner && before.epoch == after.epoch {
            continue;
        }
        changes += 1;
        assert!(after.epoch > before.epoch, "{place}: the epoch");
        assert!(alive.contains(&after.owner), "{place}: the new owner has no lease");
        let is_moved =
            before.state == SlotState::Moving(after.owner) && after.state == SlotState::Received;
        assert!(is_moved || !alive.contains(&before.owner), "{place}: the owner has a lease");
    }
    changes
}
