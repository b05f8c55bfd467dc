//! Memory that the allocator keeps after it was freed.

/// Returns freed memory of the allocator to the system.
///
/// glibc returns a freed block only if it was mapped by itself or lies at the end of its heap, and
/// after the first long block all that are shorter come from heaps. After thousands of clients with
/// incomplete requests or unread replies nearly all of their memory stays with the process
/// otherwise. Other allocators are not called.
pub(crate) fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes no pointers, and any thread may call it at any time.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
