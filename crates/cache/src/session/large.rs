//! Large items: those that would fill more than half of a segment.
//!
//! Each has a segment of its own, with addresses behind those of the ordinary segments, which is as
//! long as the item, in pages. It stands in the same queues, is reclaimed and retired as the others
//! are, and is never copied: where an ordinary item would be moved, its segment stands in line
//! anew.
//!
//! One budget holds for all: pages of large items are taken from what ordinary segments may use,
//! until the pages are back with the system. That takes a while for a large item, so they go in
//! slices, one with each turn, or with each write where room is short. Likewise, what was an
//! ordinary segment's goes back before a large item's bytes are written.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::item::{Facts, Head};
use crate::memory::meta::Queue;
use crate::session::pending::Home;
use crate::session::state::{Expect, Turn};

impl Turn<'_> {
    /// Writes a large item and points the index at it, if that holds what is expected.
    pub(crate) fn put_large(
        &self,
        (key, hash): (&[u8], KeyHash),
        value: &[u8],
        (facts, queue): (Facts, Queue),
        expect: Expect,
    ) -> Result<bool> {
        let (place, len, home) = match self.write_large(key, value, facts) {
            Err(Error::Full) => {
                self.want(Head::new(key.len(), value.len(), facts, 0).len());
                return Err(Error::Full);
            }
            written => written?,
        };
        let stored = self.publish((key, hash), place, expect);
        self.finish_large((place, len), (home, queue), matches!(stored, Ok(true)));
        stored
    }

    /// Writes a large item, where its value lies if that is a draft's, and returns its address and
    /// length. The index does not point at it.
    pub(crate) fn write_large(
        &self,
        key: &[u8],
        value: &[u8],
        facts: Facts,
    ) -> Result<(u64, usize, Home)> {
        // Its expiry is never a short one: there is no time that those would count from.
        let head = Head::new(key.len(), value.len(), facts, 0);
        if let Some((place, home)) = self.claim_draft(key, value, &head) {
            return Ok((place, head.len(), home));
        }
        let Cache { arena, segments, .. } = self.cache();
        let opened = self.cache().open_large(head.len(), self.cache().floor());
        let (segment, mut tail) = opened.ok_or(Error::Full)?;
        let place = tail.place();
        head.write(arena.room(&mut tail, head.len()), key, 0).copy_from_slice(value);
        segments.add_live(segment.number, head.len(), facts.expires_ms);
        Ok((place, head.len(), Home::Segment(segment, tail)))
    }

    /// Ends what [`write_large`](Self::write_large) began, once the index points at the item or
    /// is not to.
    pub(crate) fn finish_large(
        &self,
        (place, len): (u64, usize),
        (home, queue): (Home, Queue),
        is_published: bool,
    ) {
        let Cache { segments, epochs, .. } = self.cache();
        match home {
            Home::Segment(segment, tail) => {
                if !is_published {
                    self.note_gone(place, len);
                }
                segments.seal(epochs, segment, &tail, queue);
            }
            Home::Draft(segment, value) => {
                self.finish_draft((place, len), (segment, value), is_published.then_some(queue));
            }
        }
    }
}
