//! TLS of servers: files in PEM, and what a server needs for its connections.

mod files;
mod server;

pub use files::{PemContent, TlsError, certificates, private_key, read, roots, unreadable};
pub use server::ServerTls;
