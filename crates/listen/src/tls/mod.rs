//! TLS of servers: reading certificates and keys in PEM, and the configuration of connections.

mod files;
mod server;

pub use files::{PemContent, TlsError, certificates, private_key, read, roots, unreadable};
pub use server::ServerTls;
