//! The error for keys that this node does not serve.

use super::Cluster;
use super::coverage::Endpoint;
use nuthatch_cluster::slot::slot_of;
use std::borrow::Cow;

/// Why this node does not execute a request, with the errors of Redis Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The keys belong to different slots.
    CrossSlot,
    /// The node has no permit to serve: it cannot renew its lease.
    Down,
    /// The slot has no owner, or one that does not serve it yet.
    NotServed,
    /// Another node owns the slot.
    Moved(u16, Endpoint),
}

impl Refusal {
    /// Returns the text of the error.
    pub(crate) fn text(&self) -> Cow<'static, str> {
        match self {
            Self::CrossSlot => {
                Cow::Borrowed("CROSSSLOT Keys in request don't hash to the same slot")
            }
            Self::Down => Cow::Borrowed("CLUSTERDOWN The cluster is down"),
            Self::NotServed => Cow::Borrowed("CLUSTERDOWN Hash slot not served"),
            Self::Moved(slot, Endpoint { host, port }) => {
                Cow::Owned(format!("MOVED {slot} {host}:{port}"))
            }
        }
    }
}

impl Cluster {
    /// Returns why this node does not execute a request with these keys. `is_permitted` is the
    /// permit at the beginning of the batch. A request without keys is executed.
    #[inline]
    pub(crate) fn refuse<'k>(
        &self,
        is_permitted: bool,
        mut keys: impl Iterator<Item = &'k [u8]>,
    ) -> Option<Refusal> {
        let slot = slot_of(keys.next()?);
        if keys.any(|key| slot_of(key) != slot) {
            return Some(Refusal::CrossSlot);
        }
        if is_permitted && self.served.contains(slot) {
            return None;
        }
        Some(self.refuse_slot(is_permitted, slot))
    }

    #[cold]
    fn refuse_slot(&self, is_permitted: bool, slot: u16) -> Refusal {
        if !is_permitted {
            return Refusal::Down;
        }
        let map = self.map();
        let owner = map.ownership(slot).filter(|ownership| ownership.owner != self.id);
        let owner = owner.and_then(|ownership| map.node(ownership.owner));
        match owner.and_then(|owner| Endpoint::parse(&owner.node.addresses.client)) {
            Some(endpoint) => Refusal::Moved(slot, endpoint),
            None => Refusal::NotServed,
        }
    }
}
