//! Sessions and epoch guards: reading, writing, expiry and reclamation by one thread.
//!
//! A file imports and calls only files below it in this list:
//! - `lifecycle`: opens sessions, begins and renews guards;
//! - `restore` and `promote`, then `set_all`, `put`, `scan`, `expire_step`: operations of a guard;
//! - `demote`, then `reclaim`, then `expire`: freeing memory;
//! - `large`, then `pending` and `append`: writing items; `remove`: removing them;
//! - `item_ref`, `value_ref`: keeping and locating items;
//! - `read`: lookups;
//! - `prefetch`: prefetching for batches;
//! - `on_disk`: what operations need from disk, and which records they replace;
//! - `state`: the structs of sessions and guards, with their data in `victim`, `demotions`,
//!   `expiry_scan` and `cursor`.

pub(crate) mod append;
pub(crate) mod cursor;
pub(crate) mod demote;
pub(crate) mod demotions;
pub(crate) mod expire;
pub(crate) mod expire_step;
pub(crate) mod expiry_scan;
pub(crate) mod item_ref;
pub(crate) mod large;
pub(crate) mod lifecycle;
pub(crate) mod on_disk;
pub(crate) mod pending;
pub(crate) mod prefetch;
pub(crate) mod promote;
pub(crate) mod put;
pub(crate) mod read;
pub(crate) mod reclaim;
pub(crate) mod remove;
pub(crate) mod restore;
pub(crate) mod scan;
pub(crate) mod set_all;
pub(crate) mod state;
pub(crate) mod value_ref;
pub(crate) mod victim;
