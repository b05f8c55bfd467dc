//! The lines that a server prints when it has started: its addresses.

use super::streams::Stdout;
use crate::outcome::Failure;
use nuthatch_listen::Address;
use std::net::SocketAddr;

/// Prints the addresses of a server and of its admin endpoint, and `line`.
pub(crate) fn greet(
    scheme: &str,
    addresses: &[SocketAddr],
    admin: &[Address],
    line: &str,
) -> Result<(), Failure> {
    let listening = |address| format!("listening at {scheme}://{address}\n");
    let text: String = addresses.iter().map(listening).collect();
    let mut stdout = Stdout::new();
    stdout.write(format!("{text}{}{line}\n", metrics_at(admin)).as_bytes())?;
    stdout.flush()
}

/// Returns lines with the addresses of the admin endpoint.
pub(crate) fn metrics_at(addresses: &[Address]) -> String {
    let lines = addresses.iter().map(|address| match address {
        Address::Tcp(address) => format!("metrics at http://{address}/metrics\n"),
        Address::Unix(_) => format!("metrics at {address}, path /metrics\n"),
    });
    lines.collect()
}
