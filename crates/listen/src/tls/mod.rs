//! TLS of servers: reading certificates and keys in PEM, the configuration of connections, and when
//! certificates expire. For clients: the configuration of connections, and the issuers
//! that the system trusts.

mod client;
mod expiry;
mod files;
mod server;
#[cfg(feature = "system-roots")]
mod system;

pub use client::client_config;
pub use expiry::write_expiry;
pub use files::{PemContent, TlsError, certificates, private_key, read, roots, unreadable};
pub use server::ServerTls;
#[cfg(feature = "system-roots")]
pub use system::system_roots;
