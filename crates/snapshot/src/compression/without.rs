//! What stands in for compression in a build without it. Files that need it are refused at open.

use super::Compression;
use crate::error::Result;
use crate::header::Header;
use crate::map::Map;
use crate::writer::{Row, Sorted, SpillFile};

/// No dictionary.
pub(crate) struct Dictionary;

impl Dictionary {
    #[expect(clippy::unnecessary_wraps, reason = "the same shape as with zstd")]
    pub(crate) fn new(_: &Map, _: &Header) -> Result<Self> {
        Ok(Self)
    }
}

/// A buffer that compressed values would be read into; this build reads none.
#[derive(Debug, Default)]
pub struct Scratch;

impl Scratch {
    /// An empty buffer.
    pub fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the same shape as with zstd")]
    pub(crate) fn capacity(&self) -> usize {
        0
    }

    #[expect(clippy::unused_self, reason = "the same shape as with zstd")]
    pub(crate) fn fill(&mut self, _: &[u8], _: &Dictionary) -> std::result::Result<&[u8], String> {
        Err("a compressed value in a build without the feature `zstd`".to_owned())
    }
}

/// No settings.
pub(crate) struct Settings;

impl Settings {
    #[expect(clippy::unnecessary_wraps, reason = "the same shape as with zstd")]
    pub(crate) fn train(_: Compression, _: &Sorted, _: &SpillFile) -> Result<(Self, Vec<u8>)> {
        Ok((Self, Vec::new()))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the same shape as with zstd")]
    #[expect(clippy::unused_self, reason = "the same shape as with zstd")]
    pub(crate) fn compressor(&self, _: &SpillFile) -> Result<Compressor<'_>> {
        Ok(Compressor(std::marker::PhantomData))
    }
}

/// Compresses nothing.
pub(crate) struct Compressor<'a>(std::marker::PhantomData<&'a ()>);

impl Compressor<'_> {
    #[expect(clippy::unused_self, reason = "the same shape as with zstd")]
    pub(crate) fn tries(&self, _: &Row<'_>) -> bool {
        false
    }

    #[expect(clippy::unnecessary_wraps, reason = "the same shape as with zstd")]
    #[expect(clippy::unused_self, reason = "the same shape as with zstd")]
    pub(crate) fn compress(&mut self, _: &Row<'_>) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}
