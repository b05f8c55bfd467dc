//! Memory management: the arena, its segments, and when a segment may be reused.
//!
//! A file imports only files below it in this list:
//! - `segments` methods, by step: `prefill`, `pending`, `large`, `seal`, `scans`, `open`, `refs`,
//!   `retire`, `queues`, `sparse`;
//! - `segments`: the state that all of those share, and the memory limit;
//! - data and mechanisms: `removed`, `arena`, `line`, `epoch`, `expiry_queue`, `meta`, `list`,
//!   `runs`, `dirty`.

pub(crate) mod arena;
pub(crate) mod dirty;
pub(crate) mod epoch;
pub(crate) mod expiry_queue;
pub(crate) mod large;
pub(crate) mod line;
pub(crate) mod list;
pub(crate) mod meta;
pub(crate) mod open;
pub(crate) mod pending;
pub(crate) mod prefill;
pub(crate) mod queues;
pub(crate) mod refs;
pub(crate) mod removed;
pub(crate) mod retire;
pub(crate) mod runs;
pub(crate) mod scans;
pub(crate) mod seal;
pub(crate) mod segments;
pub(crate) mod sparse;
