//! Storing several items atomically: all of them, or none.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::item::{Facts, Head};
use crate::memory::large::pages;
use crate::memory::meta::Queue;
use crate::session::append::check_item;
use crate::session::pending::Home;
use crate::session::state::{Expect, Open, Turn};
use crate::write::Write;

/// An item that is written but not yet in the index.
struct Written<'k> {
    key: &'k [u8],
    hash: KeyHash,
    queue: Queue,
    place: u64,
    len: usize,
    /// What a large item lies in; `None` for one in a session's open segment.
    home: Option<Home>,
    is_published: bool,
}

/// Returns the bytes of the budget that an item of this length takes.
fn pages_or_bytes(cache: &Cache, bytes: usize) -> usize {
    if cache.segments.is_ordinary(bytes) { bytes } else { pages(bytes) as usize }
}

impl Turn<'_> {
    /// Stores several values, in this order: all of them, or none. With
    /// [`Full`](crate::Error::Full), nothing has changed, and [`renew`](Self::renew) makes room for
    /// all of them. `write` must have no condition, and its expiry is not
    /// [`Keep`](crate::Expiry::Keep).
    ///
    /// Other sessions may see some of the new values before the others, unless this guard is
    /// exclusive: see [`be_alone`](Self::be_alone).
    pub fn set_all<'k>(
        &self,
        items: impl Iterator<Item = (&'k [u8], &'k [u8])> + Clone,
        write: &Write<'_>,
    ) -> Result<()> {
        let mut bytes = 0;
        for (key, value) in items.clone() {
            check_item(self.cache(), key, value)?;
            bytes += pages_or_bytes(self.cache(), key.len() + value.len() + Head::MOST);
        }
        let facts = write.facts(self.now_ms(), None);
        let mut open = self.session.open.borrow_mut();
        let open = &mut *open;
        self.make_room(open, bytes);
        // A segment that is sealed may be reclaimed, with items that are not published yet.
        open.deferred = Some(Vec::new());
        let mut all = Vec::with_capacity(items.size_hint().0);
        let mut written = Ok(());
        for (key, value) in items {
            match self.write(open, (key, value), facts) {
                Ok(item) => all.push(item),
                Err(error) => written = Err(error),
            }
            if written.is_err() {
                break;
            }
        }
        let result = written.and_then(|()| self.publish_all(&mut all));
        for item in all {
            self.finish(item);
        }
        let Cache { segments, epochs, .. } = self.cache();
        for (segment, tail, queue) in open.deferred.take().unwrap_or_default() {
            segments.seal(epochs, segment, &tail, queue);
        }
        let segment_len = segments.len() as usize;
        if matches!(result, Err(Error::Full)) && bytes > segment_len {
            // The last segments that short items lie in are not filled.
            self.want(bytes + 2 * segment_len);
        }
        result
    }

    fn write<'k>(
        &self,
        open: &mut Open,
        (key, value): (&'k [u8], &[u8]),
        facts: Facts,
    ) -> Result<Written<'k>> {
        let cache = self.cache();
        let hash = cache.hash(key);
        let queue = if cache.ghost.is_back_soon(hash) { Queue::Main } else { Queue::Small };
        let (place, len, home) = if cache.segments.is_ordinary(key.len() + value.len()) {
            let item = self.write_item(open, queue, (key, value), (facts, cache.floor()));
            let (place, len) = item.ok_or(Error::Full)?;
            (place, len, None)
        } else {
            let (place, len, home) = self.write_large(key, value, facts)?;
            (place, len, Some(home))
        };
        Ok(Written { key, hash, queue, place, len, home, is_published: false })
    }

    /// Points the index at all items, or at none. Keys that are not in the index come first, since
    /// there may be no room in the index for one of them, and they can be removed again.
    fn publish_all(&self, all: &mut [Written<'_>]) -> Result<()> {
        for at in 0..all.len() {
            let Written { key, hash, place, .. } = all[at];
            match self.publish((key, hash), place, Expect::Place(None)) {
                Ok(is_published) => all[at].is_published = is_published,
                Err(error) => {
                    for item in all.iter_mut().filter(|item| item.is_published) {
                        self.take_out(item.hash, item.place, self.item(item.place, 0));
                        // Its bytes are not live any more: `finish` takes back none.
                        (item.len, item.is_published) = (0, false);
                    }
                    return Err(error);
                }
            }
        }
        for item in all.iter_mut().filter(|item| !item.is_published) {
            self.publish((item.key, item.hash), item.place, Expect::Anything)?;
            item.is_published = true;
        }
        Ok(())
    }

    /// Leaves a published item to its segment, and takes back one that is not.
    fn finish(&self, item: Written<'_>) {
        match item.home {
            Some(home) => {
                let place = (item.place, item.len);
                self.finish_large(place, (home, item.queue), item.is_published);
            }
            None if item.is_published => {}
            None => self.note_gone(item.place, item.len),
        }
    }
}
