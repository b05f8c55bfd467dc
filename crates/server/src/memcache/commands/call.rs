//! The context in which a request is executed.

use super::refusal::Result;
use crate::ZeroCopyValues;
use crate::memcache::Flags;
use crate::memcache::reply::{self, LINE_END, Line};
use crate::state::values::{self, Place};
use crate::state::{MemcachedState, Server, SnapshotKey};
use nuthatch_cache::{BatchKey, Guard, Item};

/// All that the execution of a request needs.
#[derive(Debug)]
pub struct Call<'a> {
    /// The cache, under an epoch guard.
    pub guard: &'a Guard<'a>,
    /// The state that all connections share.
    pub server: &'a Server,
    /// The state that memcached connections share.
    pub shared: &'a MemcachedState,
    /// The output buffer. Replies are appended to it.
    pub out: &'a mut Vec<u8>,
    /// Values of replies that are sent without a copy.
    pub zero_copy: &'a mut ZeroCopyValues,
    /// What the prefetch found of the first keys of the request, in their order and without those
    /// of snapshots.
    pub prefetched: &'a [BatchKey],
}

impl<'a> Call<'a> {
    /// Returns the cache and the server, for the functions of [`values`].
    #[inline]
    pub(crate) fn place(&self) -> Place<'a> {
        (self.guard, self.server)
    }

    /// Looks up a key of the cache, from what the prefetch found of it.
    #[inline]
    pub(crate) fn item(&self, key: &[u8], prefetched: Option<&BatchKey>) -> Option<Item<'a>> {
        match prefetched {
            Some(prefetched) => self.guard.get_prefetched(key, prefetched),
            None => self.guard.get(key),
        }
    }

    /// Replies with the value of a key of a snapshot, with flags 0; with nothing if it is missing.
    /// `cas` is the CAS number, if the reply has one.
    pub(crate) fn snapshot_value(
        &mut self,
        (found, key): (SnapshotKey<'_>, &[u8]),
        cas: Option<u64>,
    ) -> Result {
        let out = &mut *self.out;
        Ok(found.text(
            || self.server.max_reply_len(),
            |text| {
                if let Some(text) = text {
                    reply::value(out, key, 0, text, cas);
                }
            },
        )?)
    }

    /// Replies with the raw value of an item, after its header line.
    #[inline]
    pub(crate) fn value(&mut self, item: &Item<'_>) -> Result {
        values::send(self.place(), item, (&mut *self.out, &mut *self.zero_copy))?;
        self.out.extend_from_slice(LINE_END);
        Ok(())
    }

    /// Returns the CAS number for a write: the requested one, or a new one if the reply must
    /// contain it.
    pub(crate) fn cas_to_store(&self, flags: &Flags<'_>) -> Option<u64> {
        let new_cas = || flags.has(b'c').then(|| self.guard.new_cas());
        flags.new_cas().or_else(new_cas)
    }

    /// Removes the reply from `start` on.
    pub(crate) fn truncate_output(&mut self, start: usize) {
        self.zero_copy.truncate_output(self.out, start);
    }

    /// Replies with a line, unless the request has `noreply`.
    pub(crate) fn reply_line(&mut self, noreply: bool, line: Line) {
        if !noreply {
            reply::line(self.out, line);
        }
    }
}

/// What happens to the connection after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It continues with the next request.
    Continue,
    /// It is closed once all replies are sent.
    Close,
}
