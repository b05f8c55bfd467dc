//! Values that are received piece by piece straight into their place.
//!
//! A draft has the segment of a large item before there is one: room for a head and a key, and
//! behind it the value, as far as it has come. When [`Turn::set`] and its like are given the value
//! of a draft, they write head and key before it and the index points there: nothing is copied.
//!
//! ```text
//! draft:  | room for head and key | value, piece by piece              |
//! item:   |        | head and key | value                              |
//! ```
//!
//! A draft counts in the budget as far as it has come, a granule at a time; so who announces much
//! and sends little takes little. It holds its segment as a lease does: what becomes of the item
//! while the draft is there leaves the bytes where they are.

use crate::cache::Cache;
use crate::config::Eviction;
use crate::error::{Error, Result};
use crate::item::Head;
use crate::memory::arena::{Arena, Tail};
use crate::memory::large::pages;
use crate::memory::meta::{Hold, Queue, Segment};
use crate::memory::segments::Segments;
use crate::session::state::Turn;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A value that is received piece by piece into the cache's own memory, without a key so far: made
/// by [`Turn::draft`].
///
/// Once it is whole, [`Turn::set`] and [`Turn::set_by`] with its [`value`](Self::value) make an
/// item of it where it lies. Dropped without that, its memory comes back.
pub struct Draft {
    cache: Arc<Cache>,
    segment: Segment,
    hold: Hold,
    tail: Tail,
    /// Bytes before the value.
    front: u32,
    /// Bytes of it that count in the budget.
    counted: u64,
}

impl Draft {
    /// Bytes of the value that are still to come.
    #[inline]
    pub fn missing(&self) -> usize {
        self.tail.room()
    }

    /// Appends to the value what it still needs of these bytes, or less: how many it took. With
    /// [`Error::Full`] there is no room for more in this turn: after [`Turn::renew`] there may be.
    ///
    /// # Panics
    ///
    /// If `turn` is of another cache.
    pub fn push(&mut self, turn: &Turn<'_>, bytes: &[u8]) -> Result<usize> {
        assert!(std::ptr::eq(&raw const *self.cache, turn.cache()), "the cache of this turn");
        let used = u64::from(self.tail.used());
        if used == self.counted && self.missing() > 0 {
            self.grow(turn)?;
        }
        let room = self.missing().min((self.counted - used) as usize);
        let taken = &bytes[..bytes.len().min(room)];
        self.cache.arena.room(&mut self.tail, taken.len()).copy_from_slice(taken);
        Ok(taken.len())
    }

    /// The next granule, or what is left, counts in the budget from here on.
    fn grow(&mut self, turn: &Turn<'_>) -> Result<()> {
        let step = u64::from(self.cache.segments.len());
        let step = step.min(pages(self.len()) - self.counted);
        if !self.cache.count_draft(step) {
            turn.want(step as usize);
            return Err(Error::Full);
        }
        self.counted += step;
        Ok(())
    }

    /// The value, once it is whole.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        if self.missing() > 0 {
            return None;
        }
        let start = self.cache.segments.start(self.segment.number) + u64::from(self.front);
        Some(self.cache.arena.read_held(&self.hold, start, self.value_len()))
    }

    /// Bytes of the value when it is whole.
    pub fn value_len(&self) -> usize {
        self.len() - self.front as usize
    }

    fn len(&self) -> usize {
        self.tail.used() as usize + self.tail.room()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let Cache { segments, epochs, drafted, .. } = &*self.cache;
        drafted.fetch_sub(self.len() as u64, Ordering::Relaxed);
        if segments.is_draft(self.segment.number) {
            self.cache.discard_draft(self.segment.number, (self.counted, self.len()));
        } else {
            segments.let_go(epochs, &self.hold);
        }
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("value_len", &self.value_len())
            .field("missing", &self.missing())
            .finish_non_exhaustive()
    }
}

/// What a large item lies in, while the index does not point at it.
pub(crate) enum Home {
    /// A segment of its own.
    Segment(Segment, Tail),
    /// The segment of a draft, and the addresses of its value.
    Draft(Segment, Range<u64>),
}

impl Turn<'_> {
    /// Begins a value of so many bytes, which will have a key of at most so many. `cache` is the
    /// cache of this turn. With [`Error::Full`] there is no room, or others have begun as much as
    /// may be begun: 5/8 of the budget.
    ///
    /// # Panics
    ///
    /// If the cache is another.
    pub fn draft(&self, cache: &Arc<Cache>, key_most: usize, value_len: usize) -> Result<Draft> {
        assert!(std::ptr::eq(&raw const **cache, self.cache()), "the cache of this turn");
        let most = cache.value_most();
        if value_len > most {
            return Err(Error::TooLong { what: "value", len: value_len, most });
        }
        let front = Head::MOST + key_most.min(Cache::KEY_MOST);
        let len = front + value_len;
        let drafted = cache.drafted.fetch_add(len as u64, Ordering::Relaxed) + len as u64;
        let may_be = drafted <= Segments::large_most(cache.memory()) && self.has_room_for(len);
        let begun = may_be.then(|| cache.segments.open_draft(len, front as u32)).flatten();
        let Some((segment, tail, hold)) = begun else {
            cache.drafted.fetch_sub(len as u64, Ordering::Relaxed);
            return Err(Error::Full);
        };
        let huge = cache.segments.huge(pages(len));
        if huge > 0 {
            cache.arena.prefer_huge(tail.place(), huge, true);
        }
        let (cache, front) = (Arc::clone(cache), front as u32);
        let mut draft = Draft { cache, segment, hold, tail, front, counted: 0 };
        draft.grow(self)?;
        draft.cache.arena.room(&mut draft.tail, front as usize);
        Ok(draft)
    }

    /// Whether there will be room for a draft of so many bytes, as far as can be told: without
    /// eviction it must be there at once.
    fn has_room_for(&self, len: usize) -> bool {
        let Cache { segments, epochs, eviction, .. } = self.cache();
        let fits = match eviction {
            Eviction::S3Fifo => segments.could_fit(len, self.cache().floor()),
            Eviction::None => segments.fits_large(epochs, len, self.cache().floor()),
        };
        if !fits {
            // Pages may be on their way back.
            self.want(len);
        }
        fits
    }

    /// Writes head and key before a draft whose value this is, and returns the address of the item;
    /// `None` if it is not the value of a draft.
    pub(crate) fn claim_draft(&self, key: &[u8], value: &[u8], head: &Head) -> Option<(u64, Home)> {
        let Cache { arena, segments, .. } = self.cache();
        let (at, before) = (arena.place_of(value)?, head.value().start);
        let segment = segments.claim((at, value.len()), before)?;
        let place = at - before as u64;
        // What lies before the value is for whoever claimed it.
        let mut tail = Arena::tail(place, before as u32);
        head.write(arena.room(&mut tail, before), key, 0);
        segments.add_live(segment.number, head.len(), head.facts.expires_ms);
        Some((place, Home::Draft(segment, at..at + value.len() as u64)))
    }

    /// Makes a segment in this queue of a draft that became an item, or a draft of it again.
    pub(crate) fn finish_draft(
        &self,
        (place, len): (u64, usize),
        (segment, value): (Segment, Range<u64>),
        queue: Option<Queue>,
    ) {
        let Cache { segments, epochs, .. } = self.cache();
        let start = segments.start(segment.number);
        if let Some(queue) = queue {
            segments.enqueue(epochs, segment, (value.end - start) as u32, queue);
        } else {
            segments.remove_live(epochs, place, len);
            segments.unclaim(segment.number, value.start - start);
        }
    }
}
