//! The cache server: protocols that clients of Redis and memcached speak, and the commands behind.
//!
//! Data flows one way: bytes are received (`worker`, `net`), become requests (a decoder of `resp`,
//! `memcache`, `pmc` or `mrcache`), are executed on the cache (their `commands`), and the replies
//! of a whole batch are sent together.

pub mod admin;
mod full;
mod http_guard;
mod log;
pub mod memcache;
pub mod mrcache;
mod net;
mod number;
mod output;
pub mod pmc;
mod protocol;
pub mod resp;
mod serve;
mod span;
pub mod state;
mod tls;
mod worker;

pub use full::Full;
pub use net::address::Address;
pub use net::listener::{ListenError, Listener};
pub use net::reactor::IoBackend;
pub use output::ZeroCopyValues;
pub use protocol::Protocol;
pub use serve::{Options, Reload, Reloader, Running, Stopper};
pub use tls::{Tls, TlsError, TlsFiles, unreadable};
