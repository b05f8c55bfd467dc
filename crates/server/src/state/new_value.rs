//! Values that commands derive from stored ones, such as those of `APPEND`, and their memory until
//! they are stored.

use super::{Server, values};
use nuthatch_cache::{Error, Expiry, Item, Write};

/// Minimum length of a value whose memory is counted. Each thread builds at most one value at a
/// time, so shorter ones use little memory.
const MIN_COUNTED_LEN: usize = 64 << 10;

/// Updates an item like [`values::update`], and counts the memory of the new value until it is
/// stored. `len` returns the length of the new value from that of the old one. Returns `None` and
/// changes nothing if there is not enough memory to build it. A value that is too long is an error.
#[inline]
pub(crate) fn update<'w, R>(
    (guard, server): values::Place<'_>,
    key: &[u8],
    len: impl Fn(usize) -> usize,
    mut change: impl FnMut(Option<Item<'_>>, &mut Vec<u8>) -> (Option<Write<'w>>, R),
) -> nuthatch_cache::Result<Option<R>> {
    let (mut value_memory, max) = (ValueMemory::new(server), server.cache.max_value_len());
    values::update((guard, server), key, |item, value| {
        let old = item.as_ref().map_or(0, |item| item.value().len());
        let len = len(old);
        if len > max {
            return (None, Err(Error::TooLong { what: "value", len, max }));
        }
        if !value_memory.try_count(old, len) {
            return (None, Ok(None));
        }
        let (write, answer) = change(item, value);
        (write, Ok(Some(answer)))
    })?
}

/// Returns the write that removes a key within an update, atomically: an item that has expired is
/// not written, and the old one is removed.
pub(crate) fn removal() -> Write<'static> {
    Write::new().expiry(Expiry::At(0))
}

/// Counts the memory of a value that is being created, until this is dropped.
#[derive(Debug)]
pub(crate) struct ValueMemory<'s> {
    server: &'s Server,
    len: usize,
}

impl<'s> ValueMemory<'s> {
    pub(crate) fn new(server: &'s Server) -> Self {
        Self { server, len: 0 }
    }

    /// Counts the memory of a value of this length, which is about to be created from one of length
    /// `old`. Returns false if there is not enough memory: then the value must not be created.
    ///
    /// For a moment there are three values: the old one, the new one as it is created, and its
    /// stored copy. Without enough memory for all, storing would evict the old one.
    #[inline]
    #[must_use]
    pub(crate) fn try_count(&mut self, old: usize, len: usize) -> bool {
        len < MIN_COUNTED_LEN || self.count(old, len)
    }

    #[cold]
    fn count(&mut self, old: usize, len: usize) -> bool {
        self.give_back();
        let Server { cache, .. } = self.server;
        let together = (old as u64).saturating_add(2 * len as u64);
        let fits = together.saturating_add(self.server.held()) <= cache.memory() / 8 * 7;
        if fits {
            self.len = len;
            self.server.hold(len.cast_signed());
        }
        fits
    }

    fn give_back(&mut self) {
        let len = std::mem::take(&mut self.len);
        if len > 0 {
            self.server.hold(-len.cast_signed());
        }
    }
}

impl Drop for ValueMemory<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_cache::{Cache, Options};

    #[test]
    fn new_values_are_counted_until_they_are_stored() {
        let cache = Cache::new(Options::new().memory(64 << 20)).expect("a small cache");
        let server = Server::new(cache.into());
        let mut value_memory = ValueMemory::new(&server);
        assert!(value_memory.try_count(0, MIN_COUNTED_LEN - 1));
        assert_eq!(server.held(), 0);
        assert!(value_memory.try_count(10 << 20, 20 << 20));
        assert_eq!(server.held(), 20 << 20);
        // Another attempt replaces the first one.
        assert!(value_memory.try_count(10 << 20, 22 << 20));
        assert_eq!(server.held(), 22 << 20);
        assert!(!value_memory.try_count(10 << 20, 24 << 20));
        assert_eq!(server.held(), 0);
        assert!(value_memory.try_count(0, 24 << 20));
        assert!(!ValueMemory::new(&server).try_count(0, 24 << 20));
        drop(value_memory);
        assert_eq!(server.held(), 0);
        assert!(!ValueMemory::new(&server).try_count(0, usize::MAX / 2));
    }
}
