//! Stand-in for compression in builds without zstd.

use crate::error::Result;
use crate::writer::options::Compression;
use crate::writer::row::Row;
use crate::writer::rows::Sorted;
use crate::writer::spill::SpillFile;

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

/// Compresses no value.
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
