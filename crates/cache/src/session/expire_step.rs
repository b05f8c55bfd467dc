//! Removal of expired items, in bounded steps.
//!
//! Every sealed segment with expiring items has two scheduled scan times. A scan is *worthwhile*
//! when an eighth of the segment's bytes will have expired, and *overdue* one second after its
//! first item expires. A scan removes the expired items from the index and computes both times
//! again for the remaining items. Writes that need memory run the worthwhile scans;
//! [`Guard::expire_step`] runs all due scans, and also scans the segments that its session still
//! writes.
//!
//! A segment without remaining items is retired. A segment with few remaining items is emptied:
//! they move to another segment.

use crate::session::state::{Guard, Session};
use std::sync::atomic::Ordering;

/// Maximum number of segments that one step scans. Each costs a lock, even if it contains few
/// items.
const MAX_SEGMENTS_PER_STEP: usize = 16;

/// Bytes of items that a step moves for each item that it may examine.
const MOVED_BYTES_PER_ITEM: usize = 64;

impl Session<'_> {
    /// Returns whether there is work for [`Guard::expire_step`], now or later: items that expire,
    /// in segments that this session writes or that no session writes any more, or memory that is
    /// being freed. Items in segments that other sessions write are the work of those sessions.
    #[inline]
    pub fn has_expiring(&self) -> bool {
        let segments = &self.cache.segments;
        let state = self.state.borrow();
        let mut tails = state.tails.iter().flatten().flatten();
        segments.has_expiring.load(Ordering::Relaxed)
            || state.expiry_scan.is_some()
            || state.victim.is_some()
            || segments.has_pages_to_release()
            || tails.any(|(segment, _)| segments.first_expires_ms(segment.number) != u64::MAX)
    }
}

impl Guard<'_> {
    /// Removes expired items and frees their memory. A step examines about `max_items` items, and
    /// takes about 10 microseconds for a hundred.
    ///
    /// Returns `true` if there is more to remove or to free now: call it again soon, under another
    /// guard. After `false`, call it again later, for example in 100 ms, as long as
    /// [`Session::has_expiring`] returns true. Without these calls, expired items are removed only
    /// when writes need their memory.
    pub fn expire_step(&self, max_items: usize) -> bool {
        let mut state = self.session.state.borrow_mut();
        let state = &mut *state;
        self.choose_nearly_empty(state);
        if state.victim.is_some() {
            self.reclaim(state, max_items * MOVED_BYTES_PER_ITEM);
        }
        let (mut left, mut is_worthwhile) = (max_items, false);
        for _ in 0..MAX_SEGMENTS_PER_STEP {
            let Some(scan) = self.next_scan(state, true) else { break };
            is_worthwhile |= scan.is_worthwhile;
            left = left.saturating_sub(self.examine(state, scan, left).0);
            if left == 0 || state.victim.is_some() {
                break;
            }
        }
        self.choose_nearly_empty(state);
        is_worthwhile
            || state.expiry_scan.is_some()
            || state.victim.is_some()
            || self.cache().segments.has_pages_to_release()
    }
}
