//! Dirty pages: memory of freed segments that has not been returned to the system yet. (The term is
//! jemalloc's.)

/// The dirty pages of a freed large item, from this granule on.
#[derive(Debug)]
pub(crate) struct DirtyPages {
    pub(crate) number: u32,
    pub(crate) bytes: u64,
    /// Bytes from the start that the system may back with huge pages; 0 once the first slice was
    /// taken.
    pub(crate) huge: u64,
}

/// At most one granule or segment of dirty pages, which is being returned to the system.
pub(crate) struct DirtySlice {
    pub(crate) number: u32,
    pub(crate) bytes: u64,
    /// Bytes, from the start of the slice on, for which huge pages must be turned off first.
    pub(crate) huge: u64,
}
