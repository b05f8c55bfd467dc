//! The arguments of servers for the addresses they listen at.

use crate::outcome::Failure;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// The minimum of time limits, in milliseconds. A lower limit would end requests of busy clients.
pub(crate) const MIN_LIMIT_MS: u64 = 100;

/// Parses an address to listen on.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected host:port, with a port from 0 to 65535";
    let mut found = text.to_socket_addrs().map_err(|error| format!("{expected}: {error}"))?;
    found.next().ok_or_else(|| expected.to_owned())
}

/// Returns the failure of a server to start. If an address cannot be used, it names the flag that
/// chooses another one.
pub(crate) fn start_failure(flag: &str, error: &io::Error) -> Failure {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    let message = match error.kind() {
        AddrInUse | AddrNotAvailable | PermissionDenied => {
            format!("{flag}: {error}; {flag} ADDR chooses another address")
        }
        _ => error.to_string(),
    };
    Failure::Error(message)
}
