//! The requests that are being forwarded.

use super::links::Links;
use super::shared::Shared;
use std::sync::Arc;

/// The requests that are being forwarded.
#[derive(Default)]
pub(crate) struct Forwarding {
    /// Whether clients of RESP get the replies of other nodes, instead of `MOVED`.
    pub(crate) forwards_resp: bool,
    pub(crate) shared: Arc<Shared>,
    pub(crate) links: Links,
}

/// What was forwarded since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForwardCounts {
    /// Requests that were sent to other nodes.
    pub(crate) forwarded: u64,
    /// Those without a reply of an owner.
    pub(crate) failed: u64,
}
