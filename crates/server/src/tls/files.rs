//! Certificates and private keys, read by `nuthatch-listen`.

pub use nuthatch_listen::tls::{TlsError, unreadable};
pub(super) use nuthatch_listen::tls::{certificates, private_key};
