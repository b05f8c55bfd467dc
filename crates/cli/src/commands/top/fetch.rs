//! Fetches samples from the admin endpoint of a server.

use super::report::Report;
use super::sample::Sample;
use crate::settings::DEFAULT_ADMIN;
use nuthatch_listen::Address;
use nuthatch_listen::admin::Client;
use std::fmt::Display;
use std::io;

/// Fetches the current counters of the server.
///
/// # Errors
///
/// Returns what was found at the address instead of the admin endpoint of a cache server.
pub(super) fn sample(client: &Client) -> Result<Sample, String> {
    let address = client.address();
    let text = client.get("/metrics").map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => format!(
            "nothing listens at {address}: {error}; `nuthatch serve --admin {address}` starts a \
             server that does"
        ),
        // The response is not that of an admin endpoint.
        io::ErrorKind::InvalidData | io::ErrorKind::Other | io::ErrorKind::UnexpectedEof => {
            another_server(address, &error)
        }
        _ => format!("{address}: {error}"),
    })?;
    let sample = Sample::parse(&text).map_err(|problem| another_server(address, &problem))?;
    Ok(Sample { report: report(client)?, ..sample })
}

/// Fetches the report of the server. A server of an earlier version has none.
fn report(client: &Client) -> Result<Report, String> {
    let address = client.address();
    let reply = client.request("/live.json").map_err(|error| format!("{address}: {error}"))?;
    match reply.status {
        200 => Report::parse(&reply.body).map_err(|problem| another_server(address, &problem)),
        404 => Ok(Report::default()),
        _ => Err(format!("{address}: {}", reply.body.trim())),
    }
}

fn another_server(address: &Address, problem: &dyn Display) -> String {
    format!(
        "{address}: expected the admin endpoint of nuthatch serve, found another server: \
         {problem}; use the address of --admin of the cache server (default: {DEFAULT_ADMIN})"
    )
}
