//! The error for a request that found no memory.

/// The error for a request that found no memory under its epoch guard. It had no effect and got no
/// reply. The caller calls [`Guard::renew`](nuthatch_cache::Guard::renew), which frees memory if it
/// can, and executes the request once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;
