//! Items that other nodes send: which transfers are accepted, and how far they are.

use super::Cluster;
use super::transitions::{Incoming, IncomingStage, IncomingTransfer};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SlotSet;

/// Why a request of a transfer is not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferRefusal {
    /// The map of this node does not have the slots as moving to it yet, or items of the slots are
    /// being dropped first. The other node tries again.
    NotReady,
    /// No transfer with this number is open.
    Unknown,
}

impl Cluster {
    /// Begins a transfer from another node, and ends its previous one. Items that are there already
    /// are dropped first.
    pub(crate) fn begin_transfer(
        &self,
        (from, token): (NodeId, u64),
        slots: &SlotSet,
    ) -> Result<(), TransferRefusal> {
        let mut transitions = self.transitions();
        let Some(incoming) = transitions.incoming.get_mut(&from) else {
            return Err(TransferRefusal::NotReady);
        };
        if slots.is_empty() || slots.common(&incoming.slots) != *slots {
            return Err(TransferRefusal::NotReady);
        }
        if incoming.transfer.as_ref().is_none_or(|transfer| transfer.token != token) {
            let stage = IncomingStage::Dropping;
            incoming.complete.subtract(slots);
            incoming.transfer = Some(IncomingTransfer { token, slots: slots.clone(), stage });
            transitions.drop_items_of(slots);
            self.update(&mut transitions);
        }
        if transitions.stale.intersects(slots) {
            return Err(TransferRefusal::NotReady);
        }
        transitions.dirty.add(slots);
        if let Some(transfer) = open_transfer(transitions.incoming.get_mut(&from), token)
            && transfer.stage == IncomingStage::Dropping
        {
            transfer.stage = IncomingStage::Open;
        }
        Ok(())
    }

    /// Returns the slots whose items a transfer may store.
    ///
    /// Store them under the guard under which this was called: whatever drops them again waits for
    /// its end.
    pub(crate) fn slots_of_transfer(
        &self,
        (from, token): (NodeId, u64),
    ) -> Result<SlotSet, TransferRefusal> {
        let mut transitions = self.transitions();
        let transfer = open_transfer(transitions.incoming.get_mut(&from), token);
        let transfer = transfer.filter(|transfer| transfer.stage == IncomingStage::Open);
        transfer.map(|transfer| transfer.slots.clone()).ok_or(TransferRefusal::Unknown)
    }

    /// Notes that all items of a transfer are there. Requests for its slots wait from now on until
    /// this node owns them.
    pub(crate) fn complete_transfer(
        &self,
        (from, token): (NodeId, u64),
    ) -> Result<(), TransferRefusal> {
        let mut transitions = self.transitions();
        let incoming = transitions.incoming.get_mut(&from).ok_or(TransferRefusal::Unknown)?;
        let is_it = |transfer: &mut IncomingTransfer| {
            transfer.token == token && transfer.stage == IncomingStage::Open
        };
        let transfer = incoming.transfer.take_if(is_it).ok_or(TransferRefusal::Unknown)?;
        incoming.complete.add(&transfer.slots);
        self.update(&mut transitions);
        Ok(())
    }

    /// Counts items that were received.
    pub(crate) fn note_received(&self, items: u64, left_out: u64, bytes: usize) {
        self.moves.add_received(items, left_out, bytes);
    }
}

fn open_transfer(incoming: Option<&mut Incoming>, token: u64) -> Option<&mut IncomingTransfer> {
    incoming?.transfer.as_mut().filter(|transfer| transfer.token == token)
}
