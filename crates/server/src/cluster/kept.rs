//! Items that outlive the process of a node, and what the next process needs to know of them.

use crate::warm_restart::WarmRestart;
use nuthatch_cluster::member::Data;
use nuthatch_cluster::slot::SlotSet;
use nuthatch_tiered::TieredCache;
use std::fmt;
use std::sync::Arc;

/// The slots whose items outlive the process of a node. They are valid in the next process if its
/// node still owns the slot with this epoch: then no other node has served it meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptSlots {
    /// The data in etcd to which the epochs belong.
    pub data: Data,
    /// The folder that has the items.
    pub folder_id: u64,
    /// The slots, in ascending order.
    pub slots: Vec<KeptSlot>,
}

/// A slot whose items outlive the process of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSlot {
    /// The slot.
    pub slot: u16,
    /// The epoch in which the node serves it.
    pub epoch: u64,
    /// The lowest id of its valid records on disk.
    pub first_record: u64,
}

/// Where the items are that outlive the process.
#[derive(Clone, Debug, Default)]
pub enum ItemFiles {
    /// There are none.
    #[default]
    None,
    /// Items are on disk.
    Disk(Arc<TieredCache>),
    /// Items are dumped when the server stops.
    Dump(Arc<WarmRestart>),
}

impl ItemFiles {
    /// Returns a number that identifies the folder.
    #[must_use]
    pub fn folder_id(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Disk(disk) => disk.folder_id(),
            Self::Dump(warm_restart) => warm_restart.folder_id(),
        }
    }

    /// Makes the items of slots invalid, and writes none to disk or to a dump, until
    /// [`resume`](Self::resume). Wait for the guards of other sessions before those in memory are
    /// removed.
    pub(super) fn suspend(&self, slots: &SlotSet) {
        match self {
            Self::None => {}
            Self::Disk(disk) => disk.suspend(slots.iter()),
            Self::Dump(warm_restart) => warm_restart.suspend(slots.iter()),
        }
    }

    /// Makes the items of slots valid that are stored from now on.
    pub(super) fn resume(&self, slots: &SlotSet) {
        match self {
            Self::None => {}
            Self::Disk(disk) => disk.resume(slots.iter()),
            Self::Dump(warm_restart) => warm_restart.resume(slots.iter()),
        }
    }

    /// Sets whether other nodes send items. Writers then wait for the disk, so that none of them is
    /// dropped.
    pub(super) fn set_receiving(&self, is_receiving: bool) {
        if let Self::Disk(disk) = self {
            disk.set_must_wait(is_receiving);
        }
    }

    /// Returns the lowest id of the records of a slot that are valid in the next process.
    pub(super) fn first_record(&self, slot: u16) -> u64 {
        match self {
            Self::Disk(disk) => disk.first_records().map_or(0, |first| first.get(slot)),
            // The next dump will have valid items only.
            Self::None | Self::Dump(_) => 0,
        }
    }
}

/// Stores the slots for the next process.
pub(super) type Keep = Box<dyn Fn(&KeptSlots) + Send + Sync>;

/// The items that outlive the process of a node.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) files: ItemFiles,
    pub(super) keep: Option<Keep>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("files", &self.files).finish_non_exhaustive()
    }
}
