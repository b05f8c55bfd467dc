//! The index: tables of slots that point to items, and the ghost queue of evicted keys.

pub(crate) mod ahead;
mod chunks;
pub(crate) mod ghost;
mod level;
pub(crate) mod slot;
mod spare;
pub(crate) mod split;
pub(crate) mod table;
pub(crate) mod tables;
