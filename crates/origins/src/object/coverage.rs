//! How much of an object is in the cache, without reading it.

use crate::object::ChunkedObject;
use std::ops::Range;

/// How much of some ranges of an object is in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Number of bytes that were looked up, from the start of the first range on.
    pub examined: u64,
    /// Number of these bytes that are not in the cache.
    pub missing: u64,
}

impl ChunkedObject {
    /// Looks up how much of `ranges` is in the cache. The ranges must be in ascending order. Looks
    /// up at most `max_blocks` blocks.
    ///
    /// Returns `None` if nothing of the object can be in the cache, or if the cache cannot be read.
    /// May read files: call it from a thread that may block.
    pub fn coverage(&self, ranges: &[Range<u64>], max_blocks: u64) -> Option<Coverage> {
        let cached = self.version.cached()?;
        let blocks = self.version.blocks(cached.tasks.chunks(), cached)?;
        let (mut found, mut left) = (Coverage { examined: 0, missing: 0 }, max_blocks);
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let first = range.start / cached.block_len;
            let end = range.end.min((first + left).saturating_mul(cached.block_len));
            if end <= range.start {
                break;
            }
            for gap in blocks.missing(range.start..end).ok()? {
                found.missing += gap.end.min(end) - gap.start.max(range.start);
            }
            found.examined += end - range.start;
            left -= end.div_ceil(cached.block_len) - first;
        }
        Some(found)
    }
}
