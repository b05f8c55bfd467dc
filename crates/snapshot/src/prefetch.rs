//! Prefetching of memory.

/// Prefetches the cache line of this address: on x86-64 into the second-level cache (see
/// docs/decisions/0105), on aarch64 into the first. Never faults. Does nothing on other processors.
#[inline(always)]
pub(crate) fn prefetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: a prefetch reads nothing, faults at no address and clobbers nothing.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) std::ptr::from_ref(byte),
                options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = byte;
}
