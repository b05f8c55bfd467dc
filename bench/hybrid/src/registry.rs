//! The list of the systems.

use crate::systems::{Limits, System};
use nuthatch_bench::Result;

type Open = fn(&Limits) -> Result<Box<dyn System>>;

/// The systems, in the order of the tables.
pub(crate) const SYSTEMS: &[(&str, Open)] = &[
    ("nuthatch", crate::nuthatch::open),
    ("foyer", crate::foyer_cache::open),
    #[cfg(feature = "rocksdb")]
    ("rocksdb", crate::rocksdb::open),
];
