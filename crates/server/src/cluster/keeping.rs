//! Which slots outlive the process of a node.

use super::Cluster;
use super::kept::{ItemFiles, Kept, KeptSlot, KeptSlots};
use super::transitions::Transitions;
use nuthatch_cluster::slot::SlotSet;

impl Cluster {
    /// Sets where the items are that outlive the process, the slots whose items of the last process
    /// may be valid, and what stores the slots for the next one.
    #[must_use]
    pub fn keep_items(
        mut self,
        files: ItemFiles,
        held: &SlotSet,
        keep: impl Fn(&KeptSlots) + Send + Sync + 'static,
    ) -> Self {
        self.transitions().dirty.add(held);
        self.kept = Kept { files, keep: Some(Box::new(keep)) };
        self
    }

    /// Returns whether items outlive the process.
    #[must_use]
    pub fn keeps_items(&self) -> bool {
        !matches!(self.kept.files, ItemFiles::None)
    }

    /// Notes that the slots that outlive the process may have changed.
    pub(super) fn note_kept_changed(&self, transitions: &mut Transitions) {
        transitions.has_to_keep |= self.kept.keep.is_some();
    }

    /// Returns the slots to store for the next process, if they may have changed since the last
    /// call.
    pub(super) fn take_kept(&self, transitions: &mut Transitions) -> Option<KeptSlots> {
        let data = transitions.data.clone().filter(|_| transitions.has_to_keep)?;
        let (map, serving, files) = (self.map(), self.serving(), &self.kept.files);
        let kept = serving.iter().map(|slot| {
            // Without an owner, the map is that before the event with which the node got the slot.
            // It follows.
            let ownership = map.ownership(slot).filter(|found| found.owner == self.id)?;
            let first_record = files.first_record(slot);
            Some(KeptSlot { slot, epoch: ownership.epoch, first_record })
        });
        let slots = kept.collect::<Option<_>>()?;
        transitions.has_to_keep = false;
        Some(KeptSlots { data, folder_id: files.folder_id(), slots })
    }

    /// Leaves the items of slots that other nodes have served out of what is written when the
    /// server stops. Those of slots that this process did not serve, since it had no lease yet, are
    /// as valid as before.
    pub(super) fn suspend_stale(&self) {
        let stale = self.transitions().stale.clone();
        self.kept.files.suspend(&stale);
    }

    /// Stores the slots for the next process.
    pub(super) fn keep(&self, slots: &KeptSlots) {
        if let Some(keep) = &self.kept.keep {
            keep(slots);
        }
    }
}
