//! The state of the cluster in etcd, as a member knows it.

use super::problems::Problems;
use crate::keys::{Keys, Subject};
use crate::map::{Group, Registered, SlotMap};
use crate::node::{Node, Participation};
use crate::node_id::NodeId;
use crate::request::{Change, KeyValue};
use std::collections::BTreeSet;

/// The map, and what changed since it was last taken.
#[derive(Debug)]
pub(super) struct View {
    keys: Keys,
    map: SlotMap,
    /// Problems of keys: of those that cannot be read, and of the node's own one.
    pub(super) problems: Problems,
    /// Groups whose values cannot be read.
    unreadable: BTreeSet<u8>,
    /// Whether the map changed since the last call of `take_changes`.
    is_changed: bool,
    /// Whether nodes joined, left, or changed their participation since then.
    has_other_nodes: bool,
}

/// What changed in a view.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    pub(super) map: bool,
    pub(super) nodes: bool,
}

impl View {
    pub(super) fn new(keys: Keys) -> Self {
        let map = SlotMap::empty();
        Self {
            keys,
            map,
            problems: Problems::default(),
            unreadable: BTreeSet::new(),
            is_changed: false,
            has_other_nodes: false,
        }
    }

    pub(super) fn map(&self) -> &SlotMap {
        &self.map
    }

    /// Replaces the map by all keys of a linearizable read. What this node has written since then
    /// is kept: its revision is newer.
    pub(super) fn replace(&mut self, keys: &[KeyValue], revision: i64) {
        let before = std::mem::replace(&mut self.map, SlotMap::empty());
        self.unreadable.clear();
        let existing: BTreeSet<&str> = keys.iter().map(|key| key.key.as_str()).collect();
        self.problems.retain(|key| existing.contains(key));
        for key in keys {
            self.put(key);
        }
        for node in before.nodes().values().filter(|node| node.revision > revision) {
            self.map.set_node((**node).clone());
        }
        for group in before.groups().iter().filter(|group| group.revision() > revision) {
            self.map.set_group((**group).clone());
        }
        self.map.set_revision(revision.max(before.revision()));
        self.is_changed = true;
        self.has_other_nodes |= participants(&before) != participants(&self.map);
    }

    /// Applies changes of a watch, which reports all up to `revision`.
    pub(super) fn apply(&mut self, changes: &[Change], revision: i64) {
        for change in changes {
            match change {
                Change::Put(key) => self.put(key),
                Change::Deleted { key, revision } => self.delete(key, *revision),
            }
        }
        self.map.set_revision(revision);
    }

    /// Applies a group that this node has written.
    pub(super) fn set_group(&mut self, group: Group) {
        self.is_changed |= self.map.set_group(group);
    }

    /// Applies the key of a node.
    pub(super) fn set_node(&mut self, registered: Registered) {
        let Registered { node, .. } = &registered;
        let known = self.map.node(node.id).map(|known| rank(&known.node));
        let has_changed = known != Some(rank(node));
        if self.map.set_node(registered) {
            self.is_changed = true;
            self.has_other_nodes |= has_changed;
        }
    }

    /// Returns the groups whose values cannot be read. Nothing is planned for them.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = u8> + '_ {
        self.unreadable.iter().copied()
    }

    /// Takes what changed since the last call.
    pub(super) fn take_changes(&mut self) -> Changed {
        Changed {
            map: std::mem::take(&mut self.is_changed),
            nodes: std::mem::take(&mut self.has_other_nodes),
        }
    }

    fn put(&mut self, key: &KeyValue) {
        let revision = key.revision;
        let problem = match self.keys.subject(&key.key) {
            Some(Subject::Node(id)) => match Node::decode(id, &key.value) {
                Ok(node) => {
                    self.problems.end(&key.key);
                    return self.set_node(Registered { node, lease: key.lease, revision });
                }
                Err(problem) => problem,
            },
            Some(Subject::Group(index)) => match Group::decode(index, revision, &key.value) {
                Ok(group) => {
                    self.problems.end(&key.key);
                    self.unreadable.remove(&index);
                    return self.set_group(group);
                }
                // The slots have no owner here, and cannot be claimed: a transaction expects that
                // the key does not exist.
                Err(problem) => {
                    self.unreadable.insert(index);
                    self.set_group(Group::absent(index, revision));
                    problem
                }
            },
            None => return,
        };
        let advice = "if another version of nuthatch has written it, run one version on all nodes; \
                      otherwise delete the key with `etcdctl del`";
        self.problems.begin(&key.key, format!("etcd key {}: {problem}; {advice}", key.key));
    }

    fn delete(&mut self, key: &str, revision: i64) {
        self.problems.end(key);
        match self.keys.subject(key) {
            Some(Subject::Node(id)) if self.map.remove_node(id, revision) => {
                self.is_changed = true;
                self.has_other_nodes = true;
            }
            Some(Subject::Group(index)) => {
                self.unreadable.remove(&index);
                self.set_group(Group::absent(index, revision));
            }
            _ => {}
        }
    }
}

/// Returns what plans depend on.
fn rank(node: &Node) -> (Participation, u32) {
    (node.participation, node.weight)
}

fn participants(map: &SlotMap) -> Vec<(NodeId, (Participation, u32))> {
    map.nodes().iter().map(|(id, node)| (*id, rank(&node.node))).collect()
}
