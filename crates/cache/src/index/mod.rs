//! The index: tables of slots that point to items, and the ghost queue of evicted keys.

mod chunks;
pub(crate) mod ghost;
mod level;
pub(crate) mod probe;
pub(crate) mod slot;
mod spare;
pub(crate) mod split;
pub(crate) mod table;
pub(crate) mod tables;
