//! Slots that are not served yet, or not any more.

use nuthatch_cluster::slot::SlotSet;
use std::collections::BTreeMap;

/// The slots between two states. One lock protects it together with changes of the served slots,
/// which are those that are owned and not stale.
pub(super) struct Transitions {
    /// Slots that this node serves as soon as they are not stale.
    pub(super) owned: SlotSet,
    /// Slots that may have items in the cache.
    pub(super) dirty: SlotSet,
    /// Slots whose items have to be dropped, since another node serves them or has served them.
    pub(super) stale: SlotSet,
    /// Slots that move to other nodes, by the number of the transfer.
    pub(super) moving: BTreeMap<u64, SlotSet>,
    /// Whether the thread that drops items has to end.
    pub(super) is_stopping: bool,
}

impl Transitions {
    /// Creates the state of a node without slots, and with or without items.
    pub(super) fn new(has_items: bool) -> Self {
        Self {
            owned: SlotSet::new(),
            dirty: if has_items { SlotSet::all() } else { SlotSet::new() },
            stale: SlotSet::new(),
            moving: BTreeMap::new(),
            is_stopping: false,
        }
    }
}

/// Returns the slots that both sets have.
pub(super) fn common(one: &SlotSet, other: &SlotSet) -> SlotSet {
    one.iter().filter(|slot| other.contains(*slot)).collect()
}
