//! A client of the v3 API of etcd, with the requests that a cluster needs.

mod call;
mod client;
mod convert;
mod options;
mod proto;
mod tls;
mod watch;

pub use client::Etcd;
pub use options::{EtcdError, EtcdOptions};
pub use tls::EtcdTls;
pub use watch::{Watch, WatchUpdate};
