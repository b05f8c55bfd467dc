//! The error of a request that found no memory.

/// No memory was available under this epoch guard, and nothing was replied. There may be memory
/// after [`Guard::renew`](nuthatch_cache::Guard::renew).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;
