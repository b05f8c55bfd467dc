//! A map as the keys of etcd and their values, for programs that have no connection to etcd.

use super::{Group, Registered, SlotMap};
use crate::keys::{Keys, Subject};
use crate::node::Node;
use crate::text::InvalidText;

impl SlotMap {
    /// Returns the keys of the cluster, without their common prefix, and their values.
    #[must_use]
    pub fn entries(&self) -> Vec<(String, String)> {
        let keys = Keys::relative();
        let nodes = self.nodes().values().map(|found| &found.node);
        let nodes = nodes.map(|node| (keys.node(node.id), node.encode()));
        let groups = self.groups().iter().filter(|group| !group.runs().is_empty());
        nodes.chain(groups.map(|group| (keys.group(group.index()), group.encode()))).collect()
    }

    /// Returns the map of such keys. Keys of a later version are ignored. The leases are unknown.
    ///
    /// # Errors
    ///
    /// Fails if a value is invalid. The error names the key.
    pub fn from_entries<'e>(
        entries: impl IntoIterator<Item = (&'e str, &'e str)>,
    ) -> Result<Self, InvalidText> {
        let (keys, mut map, revision) = (Keys::relative(), Self::empty(), 1);
        for (key, value) in entries {
            let at = |error: InvalidText| error.at(format_args!("key {key}"));
            match keys.subject(key) {
                Some(Subject::Node(id)) => {
                    let node = Node::decode(id, value).map_err(at)?;
                    map.set_node(Registered { node, lease: 0, revision });
                }
                Some(Subject::Group(index)) => {
                    map.set_group(Group::decode(index, revision, value).map_err(at)?);
                }
                None => {}
            }
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{GROUP_SLOTS, Ownership, SlotState};
    use crate::node::Addresses;
    use crate::node_id::NodeId;

    #[test]
    fn a_map_has_the_same_entries_again() {
        let mut map = SlotMap::empty();
        let node = Node::new(NodeId::numbered(1), Addresses::default());
        let ownership = Ownership { owner: node.id, epoch: 7, state: SlotState::Taken };
        map.set_node(Registered { node, lease: 5, revision: 3 });
        map.set_group(Group::new(255, 4, &[Some(ownership); GROUP_SLOTS]));
        let entries = map.entries();
        assert_eq!(entries.len(), 2);
        let texts = entries.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let decoded = SlotMap::from_entries(texts.chain([("later", "anything")])).expect("a map");
        assert_eq!(decoded.entries(), entries);
        assert_eq!(decoded.slots_of(NodeId::numbered(1)).len(), GROUP_SLOTS);
        let error = SlotMap::from_entries([("slots/00", "0-1")]).expect_err("an invalid value");
        assert!(error.to_string().starts_with("key slots/00: line 1: expected"), "{error}");
    }
}
