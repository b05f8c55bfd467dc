//! Nodes to which slots could not be moved, which are avoided for some time.

use crate::boot_clock::BootTime;
use crate::node_id::NodeId;
use std::collections::BTreeMap;
use std::time::Duration;

/// The pause after the first failure, and the maximum pause: each one doubles it.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Nodes to which slots could not be moved. Otherwise one of them would keep all others from
/// getting slots.
#[derive(Debug, Default)]
pub(super) struct Avoided {
    /// The last pause of each node, and its end.
    nodes: BTreeMap<NodeId, (Duration, BootTime)>,
}

impl Avoided {
    /// Notes that a move to a node has failed.
    pub(super) fn note_failure(&mut self, id: NodeId, now: BootTime) {
        let pause = self.nodes.get(&id).map_or(MIN_PAUSE, |(last, _)| (*last * 2).min(MAX_PAUSE));
        self.nodes.insert(id, (pause, now.plus(pause)));
    }

    /// Notes that a move to a node has succeeded.
    pub(super) fn note_success(&mut self, id: NodeId) {
        self.nodes.remove(&id);
    }

    /// Returns the nodes that are avoided at this time.
    pub(super) fn at(&self, now: BootTime) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().filter(move |(_, (_, until))| now < *until).map(|(id, _)| *id)
    }

    /// Returns when the next of them is not avoided any more.
    pub(super) fn next_end(&self, now: BootTime) -> Option<BootTime> {
        self.nodes.values().map(|(_, until)| *until).filter(|until| now < *until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_avoided_longer_after_each_failure() {
        let (id, start) = (NodeId::numbered(1), BootTime::default());
        let at = |seconds| start.plus(Duration::from_secs(seconds));
        let mut avoided = Avoided::default();
        let is_avoided = |avoided: &Avoided, seconds| avoided.at(at(seconds)).any(|it| it == id);
        assert!(!is_avoided(&avoided, 0));
        avoided.note_failure(id, at(0));
        assert!(is_avoided(&avoided, 0) && !is_avoided(&avoided, 1));
        avoided.note_failure(id, at(1));
        assert!(is_avoided(&avoided, 2) && !is_avoided(&avoided, 3));
        assert_eq!((avoided.next_end(at(1)), avoided.next_end(at(3))), (Some(at(3)), None));
        (0..10).for_each(|_| avoided.note_failure(id, at(10)));
        assert!(is_avoided(&avoided, 39) && !is_avoided(&avoided, 40));
        avoided.note_success(id);
        avoided.note_failure(id, at(50));
        assert!(!is_avoided(&avoided, 51));
    }
}
