//! A client of the v3 API of etcd, with the requests that a cluster needs.

mod call;
mod client;
mod convert;
mod diagnosis;
mod login;
mod options;
mod problem;
mod problem_log;
mod proto;
mod tls;
mod transport;
mod watch;

pub use client::{Etcd, EtcdReload};
pub use options::{EtcdError, EtcdOptions};
pub use problem::{EtcdProblem, EtcdReport, Operation, ProblemKind};
pub use tls::EtcdTls;
pub use watch::{Watch, WatchUpdate};
