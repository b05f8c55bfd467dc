//! The cache server: protocols that clients of Redis and memcached speak, and the commands behind.
//!
//! Data flows one way: bytes are received (event loop), become requests (`protocol`), are executed
//! on the cache (`commands` and its like, by way of `drivers`), and the answers of a whole batch
//! are sent together.

mod accepting;
mod address;
pub mod admin;
mod batch;
pub mod commands;
mod connection;
mod connections;
mod drafting;
mod drivers;
mod facts;
mod full;
mod heap;
mod http_guard;
mod idle;
mod journal;
mod lent;
mod listener;
pub mod memcache;
pub mod mrcache;
pub mod pmc;
pub mod protocol;
mod reactor;
mod serve;
mod socket_file;
mod spares;
mod taken;
mod talk;
mod tls;
mod worker;

pub use address::Address;
pub use full::Full;
pub use lent::Lent;
pub use listener::{ListenError, Listener, Protocol};
pub use reactor::Reactors;
pub use serve::{Options, Reload, Reloader, Running, Stopper};
pub use tls::{Tls, TlsError, TlsFiles, unreadable};
