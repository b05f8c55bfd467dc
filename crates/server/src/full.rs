//! What a turn lacks when a write fails.

/// There is no room in this turn, and nothing was answered. In another turn there may be:
/// see [`Turn::renew`](nuthatch_cache::Turn::renew).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;
