//! Memory for values that are made of others, outside of the cache, before they are stored.

use super::Server;
use nuthatch_cache::{Error, Guard, Item, Write};

/// Shorter values are not counted: nobody keeps them for longer than a request takes, and there is
/// one at a time in each thread.
const COUNTED_FROM: usize = 64 << 10;

/// As [`Guard::update`], with what counts the memory of the new value. Of the old value's length,
/// `len` makes that of the new one; a longer one than may be is not made. Nothing is changed, and
/// nothing answered, if there is no room.
#[inline]
pub(crate) fn update<'w, R>(
    (turn, server): (&Guard<'_>, &Server),
    key: &[u8],
    len: impl Fn(usize) -> usize,
    mut change: impl FnMut(Option<Item<'_>>, &mut Vec<u8>) -> (Option<Write<'w>>, R),
) -> nuthatch_cache::Result<Option<R>> {
    let (mut making, most) = (Making::new(server), server.cache.max_value_len());
    turn.update(key, |item, value| {
        let old = item.as_ref().map_or(0, |item| item.value().len());
        let len = len(old);
        if len > most {
            return (None, Err(Error::TooLong { what: "value", len, max: most }));
        }
        if !making.has_room(old, len) {
            return (None, Ok(None));
        }
        let (write, answer) = change(item, value);
        (write, Ok(Some(answer)))
    })?
}

/// The memory of a value that is being made. It counts until this goes.
#[derive(Debug)]
pub(crate) struct Making<'s> {
    server: &'s Server,
    len: usize,
}

impl<'s> Making<'s> {
    pub(crate) fn new(server: &'s Server) -> Self {
        Self { server, len: 0 }
    }

    /// Counts the memory for a value of so many bytes, which is about to be made in place of one of
    /// `old`. False if there is not as much: then it must not be made.
    ///
    /// For a moment there are three: the old value, the new one as it is made, and the same where
    /// it is stored. If that did not fit, the old one would have to make room.
    #[inline]
    #[must_use]
    pub(crate) fn has_room(&mut self, old: usize, len: usize) -> bool {
        len < COUNTED_FROM || self.count(old, len)
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

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_cache::{Cache, Options};

    #[test]
    fn what_is_made_counts_until_it_is_stored_and_no_more_is_than_fits() {
        let cache = Cache::new(Options::new().memory(64 << 20)).expect("a small cache");
        let server = Server::new(cache.into());
        let mut making = Making::new(&server);
        assert!(making.has_room(0, COUNTED_FROM - 1));
        assert_eq!(server.held(), 0);
        assert!(making.has_room(10 << 20, 20 << 20));
        assert_eq!(server.held(), 20 << 20);
        // Another try takes the place of the first one.
        assert!(making.has_room(10 << 20, 22 << 20));
        assert_eq!(server.held(), 22 << 20);
        assert!(!making.has_room(10 << 20, 24 << 20));
        assert_eq!(server.held(), 0);
        assert!(making.has_room(0, 24 << 20));
        assert!(!Making::new(&server).has_room(0, 24 << 20));
        drop(making);
        assert_eq!(server.held(), 0);
        assert!(!Making::new(&server).has_room(0, usize::MAX / 2));
    }
}
