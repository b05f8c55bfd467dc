//! Arguments that several commands share.

mod admin_access;
mod input;
mod listen;
mod monitoring;
mod output;
mod tls;
mod tokens;

pub(crate) use admin_access::{admin_rules, check_host, read_token};
pub(crate) use input::InputArgs;
pub(crate) use listen::{MIN_LIMIT_MS, parse_address, start_failure};
#[cfg(feature = "delivery")]
pub(crate) use monitoring::OtlpArgs;
pub(crate) use monitoring::{AdminReloader, EXPOSED_ADMIN, MonitoringArgs};
pub(crate) use output::{Built, OutputArgs};
pub(crate) use tls::{TlsArgs, server_tls};
pub(crate) use tokens::read_tokens;
