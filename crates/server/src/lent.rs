//! Values that are sent from where they lie in the cache, between bytes that are sent from a
//! buffer.

use nuthatch_cache::{Cache, Item, Lease, Turn};
use std::collections::VecDeque;
use std::sync::Arc;

/// Shorter values are copied: that takes less than another call of the kernel's.
pub(crate) const LENT_FROM: usize = 64 << 10;

/// Bytes of room for answers that stay when some are taken back.
const KEPT: usize = 16 << 10;

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
    /// Where in the buffer each would be, in order.
    values: VecDeque<(usize, Lease)>,
    /// Bytes of all values.
    len: usize,
    /// Bytes of the buffer that were taken to be sent, while values come behind them: what is left
    /// is not moved for each value.
    taken: usize,
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
        self.values.push_back((at, turn.lease(cache, item)));
        self.len += item.value().len();
        true
    }

    /// Takes back answers from `start` on, with their values. The memory of long ones goes back at
    /// once: many such may come in one turn.
    #[inline]
    pub fn take_back(&mut self, out: &mut Vec<u8>, start: usize) {
        let is_long = out.len().saturating_sub(start) > KEPT;
        out.truncate(start);
        if is_long {
            out.shrink_to(KEPT);
        }
        while let Some((_, lease)) = self.values.pop_back_if(|(at, _)| *at >= start) {
            self.len -= lease.value().len();
        }
    }

    /// Bytes of all values.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Nothing of the buffer and of the values will be sent.
    pub(crate) fn clear(&mut self, out: &mut Vec<u8>) {
        out.clear();
        self.values.clear();
        (self.len, self.taken) = (0, 0);
    }

    /// What of answers in this buffer is to be sent first. It leaves both.
    #[inline]
    pub(crate) fn take_first(&mut self, out: &mut Vec<u8>) -> Outgoing {
        if self.values.is_empty() && self.taken == 0 {
            return Outgoing::Bytes(std::mem::take(out));
        }
        self.take_between(out)
    }

    #[cold]
    fn take_between(&mut self, out: &mut Vec<u8>) -> Outgoing {
        let taken = self.taken;
        let value = self.values.pop_front_if(|(at, _)| *at == taken);
        let first = if let Some((_, lease)) = value {
            self.len -= lease.value().len();
            Outgoing::Value(lease)
        } else {
            self.taken = self.values.front().map_or(out.len(), |(at, _)| *at);
            Outgoing::Bytes(out[taken..self.taken].to_vec())
        };
        if self.values.is_empty() && self.taken == out.len() {
            out.clear();
            self.taken = 0;
        }
        first
    }
}
