//! The cache server: protocols that clients of Redis and memcached speak, and the commands behind.
//!
//! Data flows one way: bytes are received (event loop), become requests (`protocol`), are executed
//! on the cache (`commands` and its like, by way of `drivers`), and the answers of a whole batch
//! are sent together.

pub mod admin;
pub mod commands;
mod drivers;
mod full;
mod http_guard;
mod log;
pub mod memcache;
pub mod mrcache;
mod net;
mod output;
pub mod pmc;
pub mod protocol;
mod serve;
pub mod state;
mod tls;
mod worker;

pub use full::Full;
pub use net::address::Address;
pub use net::listener::{ListenError, Listener, Protocol};
pub use net::reactor::Reactors;
pub use output::Lent;
pub use serve::{Options, Reload, Reloader, Running, Stopper};
pub use tls::{Tls, TlsError, TlsFiles, unreadable};
