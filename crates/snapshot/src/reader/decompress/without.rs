//! Stand-in for decompression in builds without zstd. Such builds reject files with compressed
//! values when they open them.

use crate::error::Result;
use crate::format::header::Header;
use crate::reader::map::Map;

/// No dictionary.
pub(crate) struct Dictionary;

impl Dictionary {
    #[expect(clippy::unnecessary_wraps, reason = "the same shape as with zstd")]
    pub(crate) fn new(_: &Map, _: &Header) -> Result<Self> {
        Ok(Self)
    }
}

/// A buffer for decompressed values. This build decompresses none.
#[derive(Debug, Default)]
pub struct Scratch;

impl Scratch {
    /// Returns an empty buffer.
    pub fn new() -> Self {
        Self
    }

    /// Returns the allocated number of bytes.
    pub fn capacity(&self) -> usize {
        0
    }

    #[expect(clippy::unused_self, reason = "the same shape as with zstd")]
    pub(crate) fn fill(&mut self, _: &[u8], _: &Dictionary) -> std::result::Result<&[u8], String> {
        Err("a compressed value in a build without the feature `zstd`".to_owned())
    }
}
