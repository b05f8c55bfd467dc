//! Sessions: reading, writing, expiry and reclamation by one thread.

pub(crate) mod append;
pub(crate) mod cursor;
pub(crate) mod expire;
pub(crate) mod expire_step;
pub(crate) mod expiry_scan;
pub(crate) mod item_ref;
pub(crate) mod large;
pub(crate) mod lifecycle;
pub(crate) mod pending;
pub(crate) mod put;
pub(crate) mod read;
pub(crate) mod reclaim;
pub(crate) mod remove;
pub(crate) mod scan;
pub(crate) mod set_all;
pub(crate) mod state;
pub(crate) mod value_ref;
pub(crate) mod victim;
