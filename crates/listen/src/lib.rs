//! Code that the servers on tokio share: those of the store and of the chunk cache. The cache
//! server uses only [`tls`].
//!
//! | module | content |
//! |---|---|
//! | `accept` | binds addresses and accepts connections |
//! | `slots` | limits the number of connections, and closes idle ones for clients that wait |
//! | `activity` | detects whether a connection is idle |
//! | `drain` | the phases in which a server stops: it drains, then it ends |
//! | `thread` | the thread of a running server |
//! | `exposure` | refuses addresses that other machines can reach without TLS or a login |
//! | `reload` | refuses a reload that would switch a protection on or off |
//! | `exposition` | metrics as text: Prometheus and OpenMetrics |
//! | `tls` | certificates and keys of servers, with the feature `tls` |
//!
//! A server binds its addresses with [`bind_all`] and runs on a [`ServerThread`]. It accepts
//! connections with [`accept`], as many as its [`ConnectionSlots`] allow, until [`Stopper::stop`]
//! is called.

mod accept;
mod activity;
mod drain;
mod exposition;
mod exposure;
mod reload;
mod slots;
mod thread;
#[cfg(feature = "tls")]
pub mod tls;

pub use accept::{accept, bind_all, spawn_acceptors};
pub use activity::{Activity, OpenCall};
pub use drain::{DrainSignal, Lifecycle, Stopper};
pub use exposition::{Label, MetricFamily, MetricsFormat, MetricsText};
pub use exposure::{Protection, exposure_problem};
pub use reload::{ReloadError, check_switch};
pub use slots::{ConnectionSlots, Slot};
pub use thread::{LogLines, ServerThread, default_threads};
