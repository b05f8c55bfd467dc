//! Zero-copy output: values that are sent from the memory of the cache, between replies in a
//! buffer.
//!
//! - Values of large items (64 KiB or more, with a segment of their own) are sent with an item
//!   reference, which keeps the item until the kernel has sent it, even to a slow client.
//! - Other values of 4 KiB or more are sent with `sendmsg` before the epoch guard ends, by a value
//!   reference. The bytes that the socket does not accept at once are copied. An item reference
//!   would keep the whole segment of such an item.
//! - Shorter values are copied.

use nuthatch_cache::{Cache, Guard, Item, ItemRef, ValueRef};
use nuthatch_uring::StableBytes;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// Minimum length of a value reference. Copying shorter values is cheaper.
pub(crate) const MIN_VALUE_REF_LEN: usize = 4 << 10;

/// Minimum length of a value that is sent with an item reference.
const MIN_ITEM_REF_LEN: usize = 64 << 10;

/// Maximum bytes of value references that wait to be sent, unless one alone is longer.
const MAX_VALUE_REF_BYTES: usize = 256 << 10;

/// Maximum capacity of the buffer that remains after a reply was removed.
const MAX_KEPT_CAPACITY: usize = 16 << 10;

/// What one send operation sends.
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
            Self::Value(item_ref) => item_ref.value(),
        }
    }

    /// Returns the bytes of memory of a buffer; 0 for an item, whose memory the cache counts.
    #[inline]
    pub(crate) fn buffered_len(&self) -> usize {
        match self {
            Self::Bytes(buffer) => buffer.capacity(),
            Self::Value(_) => 0,
        }
    }
}

// SAFETY: the bytes of a buffer are on the heap, and only an exclusive reference to it modifies
// them. Those of a value are in a segment of the cache, which the item reference keeps as it is.
unsafe impl StableBytes for Outgoing {
    #[inline]
    fn bytes(&self) -> &[u8] {
        Self::bytes(self)
    }
}

/// The values of a connection's replies that are sent without a copy, and their offsets in the
/// output buffer. Until its connection enables it, all values are copied.
#[derive(Debug, Default)]
pub struct ZeroCopyValues {
    is_enabled: bool,
    /// Whether the batch sends value references before its guard ends.
    accepts_value_refs: bool,
    /// Value references and their offsets, in order. They come before all item references.
    value_refs: Vec<(usize, ValueRef)>,
    /// Item references and their offsets, in order.
    item_refs: VecDeque<(usize, ItemRef)>,
    /// Total bytes of the values of both kinds.
    value_refs_len: usize,
    item_refs_len: usize,
    /// Bytes at the start of the buffer that were sent already. They remain until the buffer is
    /// empty, so that the rest need not be moved after each value.
    taken_len: usize,
}

impl ZeroCopyValues {
    /// Enables zero-copy output, since the sender of the replies supports it.
    pub(crate) fn enable(&mut self) {
        self.is_enabled = true;
    }

    /// Sets whether value references are accepted in this batch: only if nothing is being sent, so
    /// that they are the next bytes.
    #[inline]
    pub(crate) fn accept_value_refs(&mut self, accepts: bool) {
        self.accepts_value_refs = accepts && self.taken_len == 0;
    }

    /// Appends the value of an item to the output: to `out` as a copy, or to this list by
    /// reference. The item must have been read under `guard`, or
    /// is [detached](Item::is_detached).
    #[inline]
    pub fn value(
        &mut self,
        guard: &Guard<'_>,
        cache: &Arc<Cache>,
        item: &Item<'_>,
        out: &mut Vec<u8>,
    ) {
        let value = item.value();
        if value.len() < MIN_VALUE_REF_LEN || !self.try_push_ref((guard, cache), item, out.len()) {
            out.extend_from_slice(value);
        }
    }

    fn try_push_ref(
        &mut self,
        (guard, cache): (&Guard<'_>, &Arc<Cache>),
        item: &Item<'_>,
        at: usize,
    ) -> bool {
        let len = item.value().len();
        if !self.is_enabled || item.is_detached() {
            return false;
        }
        if len >= MIN_ITEM_REF_LEN && guard.is_large(item) {
            self.item_refs.push_back((at, guard.item_ref(cache, item)));
            self.item_refs_len += len;
            return true;
        }
        let accepts = self.accepts_value_refs && self.item_refs.is_empty();
        if !accepts || (self.value_refs_len + len > MAX_VALUE_REF_BYTES && self.value_refs_len > 0)
        {
            return false;
        }
        self.value_refs.push((at, guard.value_ref(item)));
        self.value_refs_len += len;
        true
    }

    /// Removes the output from offset `start` of the buffer on, with the values in it. Frees the
    /// memory of long replies at once, since a batch may have many.
    #[inline]
    pub fn truncate_output(&mut self, out: &mut Vec<u8>, start: usize) {
        let is_long = out.len().saturating_sub(start) > MAX_KEPT_CAPACITY;
        out.truncate(start);
        // If long replies remain in the buffer, shrinking would move them each time.
        if is_long && start <= MAX_KEPT_CAPACITY {
            out.shrink_to(MAX_KEPT_CAPACITY);
        }
        while let Some((_, item_ref)) = self.item_refs.pop_back_if(|(at, _)| *at >= start) {
            self.item_refs_len -= item_ref.value().len();
        }
        while let Some((_, value_ref)) = self.value_refs.pop_if(|(at, _)| *at >= start) {
            self.value_refs_len -= value_ref.value_len();
        }
    }

    /// Returns the bytes of all values.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.value_refs_len + self.item_refs_len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.item_refs.is_empty() && self.value_refs.is_empty()
    }

    /// Returns whether there are value references, which must be sent before the guard ends.
    #[inline]
    pub(crate) fn has_value_refs(&self) -> bool {
        !self.value_refs.is_empty()
    }

    /// Returns whether the value references should be sent before more are added.
    #[inline]
    pub(crate) fn has_enough_value_refs(&self) -> bool {
        self.value_refs_len >= MAX_VALUE_REF_BYTES / 2
    }

    /// Drops the buffer and all values.
    pub(crate) fn clear(&mut self, out: &mut Vec<u8>) {
        out.clear();
        self.value_refs.clear();
        self.item_refs.clear();
        (self.value_refs_len, self.item_refs_len, self.taken_len) = (0, 0, 0);
    }

    /// Sends the value references with the bytes of the buffer around them. `send` returns how many
    /// bytes it accepted. The others are copied to the buffer.
    pub(crate) fn send_value_refs(
        &mut self,
        guard: &Guard<'_>,
        out: &mut Vec<u8>,
        send: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let end = self.item_refs.front().map_or(out.len(), |(at, _)| *at);
        let mut parts = Vec::with_capacity(2 * self.value_refs.len() + 1);
        let mut from = 0;
        for (at, value_ref) in &self.value_refs {
            parts.push(IoSlice::new(&out[from..*at]));
            parts.push(IoSlice::new(guard.value_at(value_ref).unwrap_or_default()));
            from = *at;
        }
        parts.push(IoSlice::new(&out[from..end]));
        let len = end + self.value_refs_len;
        let result = send(&parts);
        let taken_len = *result.as_ref().unwrap_or(&0);
        if taken_len < len || end < out.len() {
            let rest = rest(&parts, taken_len, &out[end..]);
            let kept = rest.len() - (out.len() - end);
            self.item_refs.iter_mut().for_each(|(at, _)| *at = *at - end + kept);
            *out = rest;
        } else {
            out.clear();
        }
        self.value_refs.clear();
        self.value_refs_len = 0;
        result
    }

    /// Takes the first part of the output: bytes of the buffer or one value.
    #[inline]
    pub(crate) fn take_next(&mut self, out: &mut Vec<u8>) -> Outgoing {
        debug_assert!(self.value_refs.is_empty(), "value references of an iteration are left");
        if self.item_refs.is_empty() && self.taken_len == 0 {
            return Outgoing::Bytes(std::mem::take(out));
        }
        self.take_next_part(out)
    }

    #[cold]
    fn take_next_part(&mut self, out: &mut Vec<u8>) -> Outgoing {
        let taken_len = self.taken_len;
        let value = self.item_refs.pop_front_if(|(at, _)| *at == taken_len);
        let first = if let Some((_, item_ref)) = value {
            self.item_refs_len -= item_ref.value().len();
            Outgoing::Value(item_ref)
        } else {
            self.taken_len = self.item_refs.front().map_or(out.len(), |(at, _)| *at);
            Outgoing::Bytes(out[taken_len..self.taken_len].to_vec())
        };
        if self.item_refs.is_empty() && self.taken_len == out.len() {
            out.clear();
            self.taken_len = 0;
        }
        first
    }
}

/// Returns the bytes of `parts` after the first `sent`, followed by `next`.
fn rest(parts: &[IoSlice<'_>], sent: usize, next: &[u8]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut rest = Vec::with_capacity(len - sent.min(len) + next.len());
    let mut skip = sent;
    for part in parts {
        rest.extend_from_slice(&part[skip.min(part.len())..]);
        skip -= skip.min(part.len());
    }
    rest.extend_from_slice(next);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_cache::{Options, Write};

    /// Whatever the socket accepts at once, all bytes are sent once and in order.
    #[test]
    fn unsent_bytes_are_sent_later() {
        let cache = Arc::new(Cache::new(Options::new().memory(64 << 20)).expect("a cache"));
        let mut session = cache.session().expect("a session");
        let values = [vec![b'a'; MIN_VALUE_REF_LEN], vec![b'b'; 5000], vec![b'c'; 1 << 20]];
        let mut expected = Vec::new();
        for (key, value) in ["a", "b", "c"].iter().zip(&values) {
            let stored = session.guard().set(key.as_bytes(), value, &Write::new());
            stored.map(drop).expect("room");
            expected.extend([&b"<"[..], value, b">"].concat());
        }
        let whole = values[0].len() + values[1].len() + 5;
        for taken_len in (0..whole).step_by(997).chain([1, whole - 1, whole]) {
            let guard = session.guard();
            let (mut zero_copy, mut out) = (ZeroCopyValues::default(), Vec::new());
            zero_copy.enable();
            zero_copy.accept_value_refs(true);
            for key in ["a", "b", "c"] {
                out.push(b'<');
                zero_copy.value(
                    &guard,
                    &cache,
                    &guard.get(key.as_bytes()).expect("there"),
                    &mut out,
                );
                out.push(b'>');
            }
            assert_eq!(
                (zero_copy.value_refs.len(), zero_copy.item_refs.len(), out.len()),
                (2, 1, 6)
            );
            let mut sent = Vec::<u8>::new();
            let result = zero_copy.send_value_refs(&guard, &mut out, |parts| {
                let bytes = parts.iter().flat_map(|part| part.iter().copied()).collect::<Vec<u8>>();
                assert_eq!(bytes.len(), whole, "up to the first item reference");
                sent.extend(&bytes[..taken_len]);
                Ok(taken_len)
            });
            assert_eq!(result.expect("sent"), taken_len);
            drop(guard);
            while !out.is_empty() || !zero_copy.is_empty() {
                sent.extend(zero_copy.take_next(&mut out).bytes());
            }
            assert!(sent == expected, "{taken_len} bytes taken");
            assert_eq!(zero_copy.len(), 0);
        }
    }
}
