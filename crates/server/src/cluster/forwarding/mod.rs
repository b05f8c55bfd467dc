//! Requests that are forwarded to other nodes, and connections to these.
//!
//! A worker that holds such a request passes a [`Forward`] with all that it needs. A thread for
//! each connection to another node sends it, with others in one batch, and receives the replies.
//! The joined reply is put into the [`ForwardResults`] of the worker.
//!
//! Connections between nodes begin with `CLUSTER FORWARDED`, so that the other node does not
//! forward a request once more. If it does not own the slot, or not yet, it refuses the request,
//! which is then sent to the owner in the map at that time, for a limited time. `forwarder.rs`
//! beside this folder finds the owners.
//!
//! | file | content |
//! |---|---|
//! | `state.rs` | the requests that are being forwarded |
//! | `request.rs` | a request that is being forwarded, and its parts for each owner |
//! | `link.rs` | a thread with a connection to another node |
//! | `links.rs` | all of these threads |
//! | `memory.rs` | the memory of requests and replies |
//! | `results.rs` | replies on their way to a worker |
//! | `shared.rs` | what the threads share: requests to be sent again |

pub(super) mod link;
pub(super) mod links;
pub(super) mod memory;
pub(super) mod request;
mod results;
pub(super) mod shared;
pub(super) mod state;

pub(crate) use request::{Forward, Replies, Requests, Targets};
pub(crate) use results::{ForwardOutcome, ForwardResults};
