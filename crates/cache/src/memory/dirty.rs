//! Memory that nobody needs, on its way back to the system.

/// Memory of a large item that nobody needs: from this granule on.
#[derive(Debug)]
pub(crate) struct Garbage {
    pub(crate) number: u32,
    pub(crate) bytes: u64,
    /// Bytes of huge pages that it began with, until a slice of it was taken.
    pub(crate) huge: u64,
}

/// A granule of garbage, or a segment, whose pages are on their way back to the system.
pub(crate) struct Slice {
    pub(crate) number: u32,
    pub(crate) bytes: u64,
    /// From here on, so many bytes are no longer for huge pages.
    pub(crate) huge: u64,
}
