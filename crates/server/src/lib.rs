//! The cache server, for clients of Redis, memcached, poor-man's-cache and mrcache.
//!
//! [`Running::start`] starts a server with [`Options`]; [`Running::serve`] also takes a
//! [`state::Server`] with settings and users.
//!
//! A worker thread receives bytes (`worker`, `net`) and decodes them into requests (the decoder of
//! `resp`, `memcache`, `pmc` or `mrcache`). It executes a batch of requests on the cache (the
//! `commands` of each protocol), and then sends the replies of the whole batch.

mod admin;
mod cluster;
mod compression;
mod full;
mod http_guard;
mod item_bits;
mod log;
pub mod memcache;
pub mod mrcache;
mod net;
mod number;
mod output;
pub mod pmc;
mod protocol;
mod report_field;
pub mod resp;
mod serve;
mod span;
pub mod state;
mod tls;
mod warm_restart;
mod worker;

pub use cluster::{
    Admission, Cluster, Drained, ItemFiles, KeptSlot, KeptSlots, MoveReport, NodeAccess,
};
pub use compression::{Compression, CompressionOptions, DictionarySource};
pub use full::Full;
pub use log::disk_event as log_disk_event;
pub use net::listener::{ListenError, Listener};
pub use net::reactor::IoBackend;
pub use nuthatch_listen::Address;
pub use output::ZeroCopyValues;
pub use protocol::Protocol;
pub use serve::{Heartbeat, Options, Reload, Reloader, Running, Stopper};
pub use tls::{Tls, TlsError, TlsFiles, unreadable};
pub use warm_restart::{RestoreProgress, WarmRestart};
