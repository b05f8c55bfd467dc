//! Load generator for cache servers: prepared requests, counted instead of parsed replies, an echo
//! server as the lower bound, and benchmarks of several servers. See `bench/load/README.md`.

#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "the library of a benchmark program, which prints its errors"
)]

mod address;
pub mod arguments;
mod batches;
mod cpu;
mod echo;
mod echo_program;
mod error;
mod generator;
mod keys;
mod load;
mod pace;
mod protocol;
mod race;
mod replies;
mod report;
mod ring;
mod signals;

pub use address::Address;
pub use batches::{Work, Workload};
pub use echo::{Echo, Reply};
pub use echo_program::echo_program;
pub use error::Error;
pub use keys::KEY_BYTES;
pub use load::{Load, Requests};
pub use nuthatch_bench::Distribution;
pub use protocol::Protocol;
pub use race::{Race, System};
pub use report::{Found, Latency, LimitedBy, Report, TimePerOp};
pub use signals::stop_flag;
