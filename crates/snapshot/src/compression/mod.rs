//! Compression of single values with zstd, and a stand-in for builds without it.

use std::cell::RefCell;

#[cfg(feature = "zstd")]
mod zstd;
#[cfg(feature = "zstd")]
pub use zstd::Scratch;
#[cfg(feature = "zstd")]
pub(crate) use zstd::{Compressor, Dictionary, Settings};

#[cfg(not(feature = "zstd"))]
mod without;
#[cfg(not(feature = "zstd"))]
pub use without::Scratch;
#[cfg(not(feature = "zstd"))]
pub(crate) use without::{Compressor, Dictionary, Settings};

/// Scratch buffers of threads keep at most this much memory.
const MAX_KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

impl Scratch {
    /// Calls `read` with a buffer that belongs to the thread.
    pub(crate) fn with_thread_local<R>(read: impl FnOnce(&mut Self) -> R) -> R {
        // A thread that ends has no buffer any more.
        let mut scratch = SCRATCH.try_with(RefCell::take).unwrap_or_default();
        let result = read(&mut scratch);
        if scratch.capacity() <= MAX_KEPT_BYTES {
            let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
        }
        result
    }
}

/// How values are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all: every value is read in place.
    #[default]
    None,
    /// Each value by itself with zstd at this level, with a dictionary trained on the values.
    /// Values that gain less than an eighth are stored as they are, and so are those beyond 16 MiB.
    #[cfg(feature = "zstd")]
    Zstd {
        /// From 1 to 22; 3 is a good choice.
        level: i32,
    },
}
