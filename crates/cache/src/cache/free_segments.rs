//! How many segments should be free.

use crate::cache::Cache;

/// Of how many segments one is kept free, at least so many, and so many for each session.
const SPARE_PART: u32 = 32;

const SPARE_LEAST: u32 = 4;

const SPARE_EACH: u32 = 2;

impl Cache {
    /// Segments that should be free. Below that, every write reclaims some.
    pub(crate) fn spare(&self) -> u32 {
        let least = SPARE_LEAST + SPARE_EACH * self.epochs.sessions();
        (self.segments.count() / SPARE_PART).max(least)
    }

    /// Whether fewer segments are free than should be, and so many that are wanted besides.
    pub(crate) fn is_short(&self, wanted: u32) -> bool {
        let room = self.segments.room(&self.epochs);
        let enough = self.spare() + wanted;
        if wanted > 0 {
            return room.with_all < enough;
        }
        // Evicting one large item may do for long, but only once turns are over.
        room.now < enough && (room.now < self.floor() || room.with_large < enough)
    }

    /// Whether writes should reclaim something: since room is short, or since much of it is wasted.
    pub(crate) fn wants_reclaim(&self, wanted: u32) -> bool {
        self.is_short(wanted) || self.segments.is_wasteful()
    }

    /// Whether a turn can begin, after one in which a large item of so many bytes found no room.
    pub(crate) fn has_room(&self, wanted: usize) -> bool {
        if wanted > 0 {
            return self.segments.fits_large(&self.epochs, wanted, self.floor());
        }
        self.segments.room(&self.epochs).now >= self.least_at_hand()
    }

    /// Segments that must be free for a turn to begin.
    pub(crate) fn least_at_hand(&self) -> u32 {
        self.spare() - self.spare() / 4
    }

    /// Segments that should have memory ahead of their use: no more than the floor, so that what
    /// large items leave free need not go back for the next one.
    pub(crate) fn ahead(&self) -> u32 {
        SPARE_LEAST / 2 + SPARE_EACH / 2 * self.epochs.sessions()
    }

    /// Segments that only what is moved may use: were there none left, nothing could be.
    pub(crate) fn floor(&self) -> u32 {
        self.spare() / 2
    }
}
