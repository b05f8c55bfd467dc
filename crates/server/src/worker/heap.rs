//! Returning freed memory from the allocator to the system.

/// Makes glibc return blocks of at least `2 * len` bytes to the system when they are freed, and
/// keep at most `2 * len` freed bytes at the end of each heap. Does nothing with other allocators.
///
/// A request of up to `len` bytes is gathered in a buffer of up to twice that length. The allocator
/// keeps blocks of such buffers for the next requests.
///
/// By default glibc raises both thresholds when a longer mapped block is freed, the second one up
/// to 64 MiB. A heap then keeps that much freed memory in addition to the memory budget, which
/// counts the buffers of long requests and replies only until they are freed.
pub(crate) fn set_return_threshold(len: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let max = libc::c_int::try_from(len.saturating_mul(2)).unwrap_or(libc::c_int::MAX);
        for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
            // SAFETY: it takes no pointers, and any thread may call it at any time. Where a value
            // is refused, the allocator goes on as before.
            let _ = unsafe { libc::mallopt(parameter, max) };
        }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = len;
}

/// Returns freed memory of the allocator to the system. Does nothing with allocators other than
/// glibc's.
///
/// glibc by itself returns a block only if it was mapped separately, which blocks below the
/// [threshold](set_return_threshold) are not, or if it is at the end of its heap. Without this call
/// the process would keep nearly all memory of thousands of clients that had incomplete requests or
/// unread replies.
pub(crate) fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes no pointers, and any thread may call it at any time.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
