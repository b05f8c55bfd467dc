//! Arguments that several commands share.

mod listen;
mod monitoring;
mod quantity;
mod tls;
mod tokens;

pub(crate) use listen::{MIN_LIMIT_MS, address, not_started};
pub(crate) use monitoring::{EXPOSED_ADMIN, Watched};
pub(crate) use quantity::{exact_duration, exact_size, parse_duration, parse_time};
pub(crate) use tls::{TlsArguments, server_tls};
pub(crate) use tokens::read_tokens;
