//! Values that are sent from where they lie in the cache, between bytes that are sent from a
//! buffer: without a copy of their own.
//!
//! Large ones are leased: they stay until the kernel is done with them, however slow the client is.
//! A lease of another would keep the segment that it lies in, with all that is in there too. So
//! others are shown: they are sent in the turn that has read them, as far as the kernel takes them
//! at once, and what it does not take is copied.

use nuthatch_cache::{Cache, Guard, Item, ItemRef, ValueRef};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// Shorter values are copied: that takes less than to hand them to the kernel one by one.
pub(crate) const SHOWN_FROM: usize = 4 << 10;

/// Shorter values are not leased.
const LEASED_FROM: usize = 64 << 10;

/// Bytes of shown values that wait to be sent, unless one alone is longer.
const SHOWN_MOST: usize = 256 << 10;

/// Bytes of room for answers that stay when some are taken back.
const KEPT: usize = 16 << 10;

/// What is to be sent, at a time.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Bytes in a buffer.
    Bytes(Vec<u8>),
    /// A value in the cache.
    Value(ItemRef),
}

impl Outgoing {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(buffer) => buffer,
            Self::Value(lease) => lease.value(),
        }
    }

    /// Returns the bytes of memory that are not an item's, which counts in the cache.
    #[inline]
    pub(crate) fn buffered_len(&self) -> usize {
        match self {
            Self::Bytes(buffer) => buffer.capacity(),
            Self::Value(_) => 0,
        }
    }
}

/// The values of answers that are not in their buffer, and where they would be.
#[derive(Debug, Default)]
pub struct Lent {
    allowed: bool,
    /// Whoever executes requests sends what is shown before the turn ends.
    shows: bool,
    /// Where in the buffer each shown value would be, in order: before all that are leased.
    shown: Vec<(usize, ValueRef)>,
    /// Where each leased one would be, in order.
    leased: VecDeque<(usize, ItemRef)>,
    /// Bytes of the shown values, and of the leased ones.
    shown_len: usize,
    leased_len: usize,
    /// Bytes of the buffer that were taken to be sent, while values come behind them: what is left
    /// is not moved for each value.
    taken: usize,
}

impl Lent {
    /// From here on values are lent: whoever sends the answers knows of them.
    pub(crate) fn allow(&mut self) {
        self.allowed = true;
    }

    /// Whether values may be shown in this turn: nothing is being sent, so that what is sent now is
    /// what comes next.
    #[inline]
    pub(crate) fn show(&mut self, may_be_shown: bool) {
        self.shows = may_be_shown && self.taken == 0;
    }

    /// Answers with a value.
    #[inline]
    pub fn value(
        &mut self,
        turn: &Guard<'_>,
        cache: &Arc<Cache>,
        item: &Item<'_>,
        out: &mut Vec<u8>,
    ) {
        let value = item.value();
        if value.len() < SHOWN_FROM || !self.lend((turn, cache), item, out.len()) {
            out.extend_from_slice(value);
        }
    }

    fn lend(
        &mut self,
        (turn, cache): (&Guard<'_>, &Arc<Cache>),
        item: &Item<'_>,
        at: usize,
    ) -> bool {
        let len = item.value().len();
        if !self.allowed {
            return false;
        }
        if len >= LEASED_FROM && turn.is_large(item) {
            self.leased.push_back((at, turn.item_ref(cache, item)));
            self.leased_len += len;
            return true;
        }
        let shows = self.shows && self.leased.is_empty();
        if !shows || (self.shown_len + len > SHOWN_MOST && self.shown_len > 0) {
            return false;
        }
        self.shown.push((at, turn.value_ref(item)));
        self.shown_len += len;
        true
    }

    /// Takes back answers from `start` on, with their values. The memory of long ones goes back at
    /// once: many such may come in one turn.
    #[inline]
    pub fn take_back(&mut self, out: &mut Vec<u8>, start: usize) {
        let is_long = out.len().saturating_sub(start) > KEPT;
        out.truncate(start);
        // Behind long answers that stay, it is not: those would be moved each time.
        if is_long && start <= KEPT {
            out.shrink_to(KEPT);
        }
        while let Some((_, lease)) = self.leased.pop_back_if(|(at, _)| *at >= start) {
            self.leased_len -= lease.value().len();
        }
        while let Some((_, spot)) = self.shown.pop_if(|(at, _)| *at >= start) {
            self.shown_len -= spot.value_len();
        }
    }

    /// Bytes of all values.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.shown_len + self.leased_len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.leased.is_empty() && self.shown.is_empty()
    }

    /// Whether values are shown, which must be sent before the turn ends.
    #[inline]
    pub(crate) fn is_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Whether no more should be shown before those are sent.
    #[inline]
    pub(crate) fn is_shown_enough(&self) -> bool {
        self.shown_len >= SHOWN_MOST / 2
    }

    /// Nothing of the buffer and of the values will be sent.
    pub(crate) fn clear(&mut self, out: &mut Vec<u8>) {
        out.clear();
        self.shown.clear();
        self.leased.clear();
        (self.shown_len, self.leased_len, self.taken) = (0, 0, 0);
    }

    /// Has the values sent that are shown, with the bytes of the buffer around them: `send` answers
    /// how many it took. What it did not take is in the buffer then.
    pub(crate) fn send_shown(
        &mut self,
        turn: &Guard<'_>,
        out: &mut Vec<u8>,
        send: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let end = self.leased.front().map_or(out.len(), |(at, _)| *at);
        let mut parts = Vec::with_capacity(2 * self.shown.len() + 1);
        let mut from = 0;
        for (at, spot) in &self.shown {
            parts.push(IoSlice::new(&out[from..*at]));
            parts.push(IoSlice::new(turn.value_at(spot).unwrap_or_default()));
            from = *at;
        }
        parts.push(IoSlice::new(&out[from..end]));
        let len = end + self.shown_len;
        let result = send(&parts);
        let taken = *result.as_ref().unwrap_or(&0);
        if taken < len || end < out.len() {
            let rest = rest(&parts, taken, &out[end..]);
            let kept = rest.len() - (out.len() - end);
            self.leased.iter_mut().for_each(|(at, _)| *at = *at - end + kept);
            *out = rest;
        } else {
            out.clear();
        }
        self.shown.clear();
        self.shown_len = 0;
        result
    }

    /// What of answers in this buffer is to be sent first. It leaves both.
    #[inline]
    pub(crate) fn take_first(&mut self, out: &mut Vec<u8>) -> Outgoing {
        debug_assert!(self.shown.is_empty(), "the turn has ended");
        if self.leased.is_empty() && self.taken == 0 {
            return Outgoing::Bytes(std::mem::take(out));
        }
        self.take_between(out)
    }

    #[cold]
    fn take_between(&mut self, out: &mut Vec<u8>) -> Outgoing {
        let taken = self.taken;
        let value = self.leased.pop_front_if(|(at, _)| *at == taken);
        let first = if let Some((_, lease)) = value {
            self.leased_len -= lease.value().len();
            Outgoing::Value(lease)
        } else {
            self.taken = self.leased.front().map_or(out.len(), |(at, _)| *at);
            Outgoing::Bytes(out[taken..self.taken].to_vec())
        };
        if self.leased.is_empty() && self.taken == out.len() {
            out.clear();
            self.taken = 0;
        }
        first
    }
}

/// What is left of parts of which so many bytes were sent, and what comes behind them.
fn rest(parts: &[IoSlice<'_>], sent: usize, behind: &[u8]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut rest = Vec::with_capacity(len - sent.min(len) + behind.len());
    let mut skip = sent;
    for part in parts {
        rest.extend_from_slice(&part[skip.min(part.len())..]);
        skip -= skip.min(part.len());
    }
    rest.extend_from_slice(behind);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_cache::{Options, Write};

    /// Whatever part of them the kernel takes at once, all bytes are sent once and in order.
    #[test]
    fn what_is_not_taken_is_sent_later() {
        let cache = Arc::new(Cache::new(Options::new().memory(64 << 20)).expect("a cache"));
        let mut session = cache.session().expect("a session");
        let values = [vec![b'a'; SHOWN_FROM], vec![b'b'; 5000], vec![b'c'; 1 << 20]];
        let mut expected = Vec::new();
        for (key, value) in ["a", "b", "c"].iter().zip(&values) {
            let stored = session.guard().set(key.as_bytes(), value, &Write::new());
            stored.map(drop).expect("room");
            expected.extend([&b"<"[..], value, b">"].concat());
        }
        let whole = values[0].len() + values[1].len() + 5;
        for taken in (0..whole).step_by(997).chain([1, whole - 1, whole]) {
            let turn = session.guard();
            let (mut lent, mut out) = (Lent::default(), Vec::new());
            lent.allow();
            lent.show(true);
            for key in ["a", "b", "c"] {
                out.push(b'<');
                lent.value(&turn, &cache, &turn.get(key.as_bytes()).expect("there"), &mut out);
                out.push(b'>');
            }
            assert_eq!((lent.shown.len(), lent.leased.len(), out.len()), (2, 1, 6));
            let mut sent = Vec::<u8>::new();
            let result = lent.send_shown(&turn, &mut out, |parts| {
                let bytes = parts.iter().flat_map(|part| part.iter().copied()).collect::<Vec<u8>>();
                assert_eq!(bytes.len(), whole, "up to what is leased");
                sent.extend(&bytes[..taken]);
                Ok(taken)
            });
            assert_eq!(result.expect("sent"), taken);
            drop(turn);
            while !out.is_empty() || !lent.is_empty() {
                sent.extend(lent.take_first(&mut out).bytes());
            }
            assert!(sent == expected, "{taken} bytes taken");
            assert_eq!(lent.len(), 0);
        }
    }
}
