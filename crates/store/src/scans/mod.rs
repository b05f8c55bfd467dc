//! Scans in batches: on the thread of the caller, as streams, and by several threads.

pub(crate) mod batch;
pub(crate) mod parallel;
pub(crate) mod stream;
