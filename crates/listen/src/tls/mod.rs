//! TLS of servers: reading certificates and keys in PEM, the configuration of connections, and when
//! certificates expire.

mod expiry;
mod files;
mod server;

pub use expiry::write_expiry;
pub use files::{PemContent, TlsError, certificates, private_key, read, roots, unreadable};
pub use server::ServerTls;
