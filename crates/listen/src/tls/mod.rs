//! TLS of servers: reading certificates and keys in PEM, the configuration of connections, and when
//! certificates expire. For clients: the configuration of connections, the issuers that
//! the system trusts, and why a connection failed.

mod client;
mod expiry;
mod failure;
mod files;
mod server;
#[cfg(feature = "system-roots")]
mod system;

pub use client::client_config;
pub use expiry::write_expiry;
pub use failure::{CLIENT_ALERTS, causes, client_alert};
pub use files::{PemContent, TlsError, certificates, private_key, read, roots, unreadable};
pub use server::ServerTls;
#[cfg(feature = "system-roots")]
pub use system::system_roots;
