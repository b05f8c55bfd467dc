//! What the servers on tokio share.
//!
//! | module | content |
//! |---|---|
//! | `accept` | binds addresses and accepts connections |
//! | `slots` | the maximum number of connections; idle ones end for clients that wait |
//! | `activity` | whether a connection is idle |
//! | `drain` | how a server stops: it drains, then it ends |
//! | `thread` | the thread of a running server |
//! | `exposure` | refuses addresses that other machines can reach without TLS or a login |
//! | `reload` | refuses a reload that would switch a protection on or off |
//! | `metrics` | metrics in the text format of Prometheus |
//! | `tls` | TLS of servers, with the feature `tls` |
//!
//! A server binds its addresses with [`bind_all`], serves them on a [`ServerThread`], accepts with
//! [`accept`] up to the limit of its [`ConnectionSlots`], and stops when its [`Stopper`] says so.

mod accept;
mod activity;
mod drain;
mod exposure;
mod metrics;
mod reload;
mod slots;
mod thread;
#[cfg(feature = "tls")]
pub mod tls;

pub use accept::{accept, bind_all, spawn_acceptors};
pub use activity::{Activity, OpenCall};
pub use drain::{DrainSignal, Lifecycle, Stopper};
pub use exposure::{Protection, exposure_problem};
pub use metrics::MetricsText;
pub use reload::{ReloadError, check_switch};
pub use slots::{ConnectionSlots, Slot};
pub use thread::{LogLines, ServerThread, default_threads};
