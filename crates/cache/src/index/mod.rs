//! The index: tables of slots that point at items, and the ghost queue.

pub(crate) mod ghost;
pub(crate) mod slot;
pub(crate) mod table;
pub(crate) mod tables;
