//! Memory that the allocator keeps after it was freed.

/// Has the allocator return blocks to the system when they are freed, if they have at least twice
/// this many bytes, and keep at most as many at the end of each heap. A buffer that gathers a
/// shorter request may have up to twice as many bytes, and its block is used again and again.
///
/// By default glibc raises both thresholds when a longer mapped block is freed, the second one up
/// to 64 MiB. A heap then keeps that much freed memory in addition to the memory budget, which
/// counts the buffers of long requests and replies only until they are freed. Other allocators are
/// not called.
pub(crate) fn return_blocks_from(len: usize) {
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

/// Returns freed memory of the allocator to the system.
///
/// glibc returns a freed block only if it was mapped by itself or lies at the end of its heap, and
/// blocks that are shorter than [`return_blocks_from`] has set come from heaps. After thousands of
/// clients with incomplete requests or unread replies nearly all of their memory stays with the
/// process otherwise. Other allocators are not called.
pub(crate) fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes no pointers, and any thread may call it at any time.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
