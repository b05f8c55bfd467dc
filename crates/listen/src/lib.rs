//! Code that the servers of the cache, the store and the chunk cache share.
//!
//! | module | content |
//! |---|---|
//! | `accept` | binds addresses and accepts connections |
//! | `slots` | limits the number of connections, and closes idle ones for clients that wait |
//! | `activity` | detects whether a connection is idle |
//! | `drain` | the phases in which a server stops: it drains, then it ends |
//! | `thread` | the thread of a running server |
//! | `secret_hash` | hashes of passwords and tokens |
//! | `exposure` | refuses addresses that other machines can reach without TLS or a login |
//! | `reload` | refuses a reload that would switch a protection on or off |
//! | `inherited` | sockets that the parent process has opened, such as systemd |
//! | `rate_limit` | limits log lines that clients can cause |
//! | `exposition` | metrics as text: Prometheus and OpenMetrics |
//! | `live_report` | what a server reports to its live page beside the metrics |
//! | `sample` | parses samples of metrics |
//! | `process` | the metrics of a process, with the feature `admin` |
//! | `metrics_source` | what a server reports to the admin endpoint |
//! | `address` | addresses of the network and of socket files |
//! | `admin` | the admin endpoint and its client, with the feature `admin` |
//! | `tls` | certificates and keys of servers, with the feature `tls` |
//!
//! A server on tokio binds its addresses with [`bind_all`] and runs on a [`ServerThread`]. It
//! accepts connections with [`accept`], as many as its [`ConnectionSlots`] allow, until
//! [`Stopper::stop`] is called.

mod accept;
mod activity;
mod address;
#[cfg(feature = "admin")]
pub mod admin;
mod drain;
mod exposition;
mod exposure;
mod inherited;
mod live_report;
mod metrics_source;
#[cfg(feature = "admin")]
mod process;
mod rate_limit;
mod readable;
mod reload;
mod sample;
mod secret_hash;
mod slots;
mod thread;
#[cfg(feature = "tls")]
pub mod tls;

pub use accept::{accept, bind_all, spawn_acceptors};
pub use activity::{Activity, OpenCall};
pub use address::{Address, SocketFiles};
pub use drain::{DrainSignal, Lifecycle, Stopper};
pub use exposition::{Label, MetricFamily, MetricsFormat, MetricsText};
pub use exposure::{Protection, exposure_problem};
pub use inherited::{inherit_sockets, unused_sockets};
pub use live_report::{LiveReport, LiveRow, LiveTable, LiveValue};
pub use metrics_source::MetricsSource;
#[cfg(feature = "admin")]
pub use process::{Process, write_process};
pub use rate_limit::RateLimit;
pub use readable::{open_readable, refuse_pipes, refused_pipe, refuses_pipes};
pub use reload::{ReloadError, check_switch};
pub use sample::MetricSample;
pub use secret_hash::SecretHash;
pub use slots::{ConnectionSlots, Slot};
pub use thread::{LogLines, ServerThread, default_threads};
