//! Memory that the allocator keeps after it was freed.

/// Has the allocator return blocks of this many bytes and more to the system when they are freed,
/// and keep at most twice as many bytes at the end of each heap.
///
/// By default glibc raises both thresholds when a longer mapped block is freed, the second one up
/// to 64 MiB. A heap then keeps that much freed memory in addition to the memory budget, which
/// counts the buffers of long requests and replies only until they are freed. Other allocators are
/// not called.
pub(crate) fn return_blocks_from(len: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let len = libc::c_int::try_from(len).unwrap_or(libc::c_int::MAX);
        for (parameter, value) in
            [(libc::M_MMAP_THRESHOLD, len), (libc::M_TRIM_THRESHOLD, len.saturating_mul(2))]
        {
            // SAFETY: it takes no pointers, and any thread may call it at any time. Where a value
            // is refused, the allocator goes on as before.
            let _ = unsafe { libc::mallopt(parameter, value) };
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
