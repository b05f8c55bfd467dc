//! The cache server: protocols that clients of Redis and memcached speak, and the commands behind.
//!
//! Data flows one way: bytes are received (event loop), become requests (`protocol`), are executed
//! on the cache (`commands`), and the answers of a whole batch are sent together.

mod address;
pub mod admin;
mod batch;
pub mod commands;
mod connection;
mod connections;
mod full;
mod journal;
pub mod memcache;
pub mod mrcache;
pub mod pmc;
pub mod protocol;
mod reactor;
mod serve;
mod worker;

pub use address::Address;
pub use full::Full;
pub use serve::{Options, Running, Stopper};
