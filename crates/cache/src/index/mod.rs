//! The index: tables of slots that point to items, and the ghost queue of evicted keys.

pub(crate) mod ghost;
pub(crate) mod slot;
pub(crate) mod table;
pub(crate) mod tables;
