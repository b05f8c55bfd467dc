//! The bounds of the keys below a page, from the branches above it.

use super::page::{Gap, Page, compare};

/// The bounds of a search for a key, from the branches above a leaf.
#[derive(Clone, Copy, Default)]
pub(super) struct KeyBounds<'t> {
    /// The closest branch keys: `low` is the greatest one that is not above the key, and `high` the
    /// least one above it.
    pub(super) low: Option<&'t [u8]>,
    pub(super) high: Option<&'t [u8]>,
    /// The lowest branch, and the index of the entry that was followed.
    pub(super) parent: Option<(Page<'t>, usize)>,
}

impl<'t> KeyBounds<'t> {
    /// Descends from a branch. `None` if the keys that the search found there are not within the
    /// bounds of the branches above.
    #[inline(always)]
    pub(super) fn down(self, branch: Page<'t>, gap: &Gap<'t>) -> Option<Self> {
        let is_lower = matches!((self.low, gap.below), (Some(a), Some(b)) if compare(b, a).is_lt());
        let is_upper =
            matches!((self.high, gap.above), (Some(a), Some(b)) if compare(b, a).is_gt());
        let parent = Some((branch, gap.index - 1));
        let bounds = Self { low: gap.below.or(self.low), high: gap.above.or(self.high), parent };
        (!is_lower && !is_upper).then_some(bounds)
    }
}
