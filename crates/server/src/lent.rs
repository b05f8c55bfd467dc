//! Values that are sent from where they lie in the cache, between bytes that are sent from a
//! buffer.

use nuthatch_cache::{Cache, Item, Lease, Turn};
use std::sync::Arc;

/// Shorter values are copied: that takes less than another call of the kernel's.
pub(crate) const LENT_FROM: usize = 64 << 10;

/// What is to be sent, at a time.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Bytes in a buffer.
    Bytes(Vec<u8>),
    /// A value in the cache.
    Value(Lease),
}

impl Outgoing {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(buffer) => buffer,
            Self::Value(lease) => lease.value(),
        }
    }
}

/// The values of answers that are not in their buffer, and where they would be.
#[derive(Debug, Default)]
pub struct Lent {
    allowed: bool,
    values: Vec<(usize, Lease)>,
}

impl Lent {
    /// From here on values are lent: whoever sends the answers knows of them.
    pub(crate) fn allow(&mut self) {
        self.allowed = true;
    }

    /// Answers with a value. Long ones that have a segment of their own are not copied; others
    /// would keep a segment with what else is in it.
    #[inline]
    pub fn value(
        &mut self,
        turn: &Turn<'_>,
        cache: &Arc<Cache>,
        item: &Item<'_>,
        out: &mut Vec<u8>,
    ) {
        let value = item.value();
        if value.len() < LENT_FROM || !self.lend(turn, cache, item, out.len()) {
            out.extend_from_slice(value);
        }
    }

    #[cold]
    fn lend(&mut self, turn: &Turn<'_>, cache: &Arc<Cache>, item: &Item<'_>, at: usize) -> bool {
        if !self.allowed || !turn.is_large(item) {
            return false;
        }
        self.values.push((at, turn.lease(cache, item)));
        true
    }

    /// Takes back the values of answers from `start` on, which are taken back themselves.
    #[inline]
    pub fn truncate(&mut self, start: usize) {
        if !self.values.is_empty() {
            self.values.retain(|(at, _)| *at < start);
        }
    }

    /// Bytes of all values.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.values.iter().map(|(_, lease)| lease.value().len()).sum()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
    }

    /// What of answers in this buffer is to be sent first. It leaves both.
    pub(crate) fn take_first(&mut self, out: &mut Vec<u8>) -> Outgoing {
        let end = match self.values.first() {
            None => return Outgoing::Bytes(std::mem::take(out)),
            Some((0, _)) => return Outgoing::Value(self.values.remove(0).1),
            Some((at, _)) => *at,
        };
        let rest = out.split_off(end);
        self.values.iter_mut().for_each(|(at, _)| *at -= end);
        Outgoing::Bytes(std::mem::replace(out, rest))
    }
}
