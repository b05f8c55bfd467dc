//! Decompression of values with zstd, and a stand-in for builds without the feature `zstd`.

use std::cell::RefCell;

#[cfg(feature = "zstd")]
mod zstd;
#[cfg(feature = "zstd")]
pub(super) use zstd::Dictionary;
#[cfg(feature = "zstd")]
pub use zstd::Scratch;

#[cfg(not(feature = "zstd"))]
mod without;
#[cfg(not(feature = "zstd"))]
pub(super) use without::Dictionary;
#[cfg(not(feature = "zstd"))]
pub use without::Scratch;

/// Maximum number of bytes that the scratch buffer of a thread keeps between uses.
const MAX_KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

impl Scratch {
    /// Calls `read` with the scratch buffer of this thread.
    pub(super) fn with_thread_local<R>(read: impl FnOnce(&mut Self) -> R) -> R {
        // The buffer of a thread that is ending is destroyed already.
        let mut scratch = SCRATCH.try_with(RefCell::take).unwrap_or_default();
        let result = read(&mut scratch);
        if scratch.capacity() <= MAX_KEPT_BYTES {
            let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
        }
        result
    }
}
