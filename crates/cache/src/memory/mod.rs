//! Memory: the arena, its segments and their states, and when a segment may be given out anew.

pub(crate) mod arena;
pub(crate) mod dirty;
pub(crate) mod epoch;
pub(crate) mod expiry_queue;
pub(crate) mod holds;
pub(crate) mod large;
pub(crate) mod meta;
pub(crate) mod open;
pub(crate) mod pending;
pub(crate) mod prefill;
pub(crate) mod queues;
pub(crate) mod removed;
pub(crate) mod retire;
pub(crate) mod runs;
pub(crate) mod scans;
pub(crate) mod seal;
pub(crate) mod segments;
