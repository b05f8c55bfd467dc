//! Compression of values with zstd, and a stand-in for builds without the feature `zstd`.

#[cfg(feature = "zstd")]
mod zstd;
#[cfg(feature = "zstd")]
pub(super) use zstd::{Compressor, Settings};

#[cfg(not(feature = "zstd"))]
mod without;
#[cfg(not(feature = "zstd"))]
pub(super) use without::{Compressor, Settings};
