//! The memory of requests that are being forwarded, and of their replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

/// Counts the bytes of all requests and replies.
#[derive(Debug, Default)]
pub(crate) struct ForwardMemory {
    used: AtomicUsize,
    /// The change since [`take_change`](Self::take_change).
    change: AtomicIsize,
}

impl ForwardMemory {
    /// Returns whether this many more bytes are within a maximum. If no others are used, they are.
    pub(crate) fn has_room(&self, len: usize, max: usize) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        used == 0 || used.saturating_add(len) <= max
    }

    /// Returns the change of the bytes since the last call.
    pub(crate) fn take_change(&self) -> isize {
        if self.change.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.change.swap(0, Ordering::Relaxed)
    }
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    memory: Arc<ForwardMemory>,
    len: usize,
}

impl HeldBytes {
    /// Counts this many bytes.
    pub(crate) fn new(memory: &Arc<ForwardMemory>, len: usize) -> Self {
        let mut held = Self { memory: Arc::clone(memory), len: 0 };
        held.set_len(len);
        held
    }

    /// Counts the bytes of another one, too, which ends. The sum of all bytes does not change.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.memory, &other.memory), "the same memory");
        self.len += std::mem::take(&mut other.len);
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Counts another number of bytes instead.
    pub(crate) fn set_len(&mut self, len: usize) {
        let change = len.cast_signed() - self.len.cast_signed();
        self.len = len;
        self.memory.used.fetch_add(change.cast_unsigned(), Ordering::Relaxed);
        self.memory.change.fetch_add(change, Ordering::Relaxed);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.set_len(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_they_are_dropped() {
        let memory = Arc::new(ForwardMemory::default());
        assert!(memory.has_room(101, 100));
        let mut held = HeldBytes::new(&memory, 10);
        assert_eq!((memory.take_change(), memory.take_change()), (10, 0));
        assert!(memory.has_room(90, 100) && !memory.has_room(91, 100));
        held.set_len(4);
        let other = HeldBytes::new(&memory, 1);
        assert_eq!((held.len(), memory.take_change()), (4, -5));
        held.absorb(other);
        assert_eq!((held.len(), memory.take_change()), (5, 0));
        drop(held);
        assert_eq!(memory.take_change(), -5);
        assert!(memory.has_room(101, 100));
    }
}
