//! What a turn lacks when a write fails.

/// There is no room in this turn, and nothing was answered. In another turn there may be:
/// see [`Guard::renew`](nuthatch_cache::Guard::renew).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;
