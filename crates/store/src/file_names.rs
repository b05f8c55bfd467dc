//! The names of the files within a store's folder.

/// The data file.
pub(crate) const DATA: &str = "data.mdb";
/// The lock file.
pub(crate) const LOCKS: &str = "lock.mdb";
