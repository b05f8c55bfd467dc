//! The error for keys that this node does not serve.

use super::Cluster;
use super::endpoint::Endpoint;
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
    /// The request has to wait: another node is about to serve the slot, or this one.
    Waits,
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
            Self::NotServed | Self::Waits => Cow::Borrowed("CLUSTERDOWN Hash slot not served"),
            Self::Moved(slot, Endpoint { host, port }) => {
                Cow::Owned(format!("MOVED {slot} {host}:{port}"))
            }
        }
    }
}

/// The slots of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The node had no permit to serve when the batch began.
    NotPermitted,
    /// The node had a permit to serve, or is not part of a cluster. Slots are checked.
    Permitted,
    /// All slots have been checked, under the guard of the request.
    Checked,
}

impl Admission {
    /// Returns that of a request in a batch that began with or without a permit, and whether its
    /// slots have been checked.
    #[inline]
    pub(crate) fn of_request(is_permitted: bool, is_checked: bool) -> Self {
        match (is_permitted, is_checked) {
            (false, _) => Self::NotPermitted,
            (true, false) => Self::Permitted,
            (true, true) => Self::Checked,
        }
    }

    /// Returns that of the requests of a transaction whose slots have been checked.
    pub(crate) fn within_transaction(self) -> Self {
        if self == Self::Permitted { Self::Checked } else { self }
    }
}

impl Cluster {
    /// Returns whether the node serves the slot of a key, without anything to record or to wait
    /// for. That holds until the guard of the cache ends under which it was asked, if the node has
    /// a permit.
    #[inline]
    pub(crate) fn serves(&self, key: &[u8]) -> bool {
        self.served.contains(slot_of(key))
    }

    /// Returns why this node does not execute a request with these keys. A request without keys is
    /// executed. `writes` is whether it may change them.
    #[inline]
    pub(crate) fn refuse<'k>(
        &self,
        is_permitted: bool,
        writes: bool,
        mut keys: impl Iterator<Item = &'k [u8]> + Clone,
    ) -> Option<Refusal> {
        let mut written = keys.clone();
        let slot = slot_of(keys.next()?);
        if keys.any(|key| slot_of(key) != slot) {
            return Some(Refusal::CrossSlot);
        }
        if is_permitted && self.served.contains(slot) {
            return None;
        }
        let written: Option<&mut dyn Iterator<Item = &'k [u8]>> =
            if writes { Some(&mut written) } else { None };
        self.refuse_slot(is_permitted, slot, written)
    }

    /// Returns why this node does not execute a request with these keys, which may belong to
    /// different slots. If other nodes own some, that is the reason, even if others have to wait.
    #[cold]
    pub(crate) fn refuse_each<'k>(
        &self,
        is_permitted: bool,
        writes: bool,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Option<Refusal> {
        let mut found = None;
        for key in keys {
            match self.refuse(is_permitted, writes, std::iter::once(key)) {
                None => {}
                Some(Refusal::Waits) => found = found.or(Some(Refusal::Waits)),
                Some(moved @ Refusal::Moved(..)) => found = Some(moved),
                refusal => return refusal,
            }
        }
        found
    }

    #[cold]
    fn refuse_slot(
        &self,
        is_permitted: bool,
        slot: u16,
        written: Option<&mut dyn Iterator<Item = &[u8]>>,
    ) -> Option<Refusal> {
        if !is_permitted {
            return Some(Refusal::Down);
        }
        if self.moving.contains(slot) {
            let is_recorded = written.is_none_or(|keys| self.changes.record(keys));
            return (!is_recorded).then_some(Refusal::Waits);
        }
        // A slot is in one of both sets at each time while it is served.
        if self.served.contains(slot) {
            return None;
        }
        if self.awaited.contains(slot) {
            return Some(Refusal::Waits);
        }
        let map = self.map();
        let owner = map.ownership(slot).filter(|ownership| ownership.owner != self.id);
        let owner = owner.and_then(|ownership| map.node(ownership.owner));
        let address = owner.map(|owner| &owner.node.addresses.client);
        // This node may have the address of an earlier one, whose lease has not ended yet.
        let own = map.node(self.id).map(|own| &own.node.addresses.client);
        Some(match address.filter(|at| own != Some(*at)).and_then(|at| Endpoint::parse(at)) {
            Some(endpoint) => Refusal::Moved(slot, endpoint),
            None => Refusal::NotServed,
        })
    }
}
