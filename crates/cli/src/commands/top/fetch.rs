//! Fetches samples from the admin endpoint of a server.

use super::report::Report;
use super::sample::Sample;
use crate::settings::DEFAULT_ADMIN;
use nuthatch_listen::Address;
use nuthatch_listen::admin::Client;
use std::fmt::Display;
use std::io;

/// The statuses of a refused token: a wrong one, and one after too many wrong ones.
const UNAUTHORIZED: u16 = 401;
const TOO_MANY_REQUESTS: u16 = 429;

/// Fetches the current counters of the server.
///
/// # Errors
///
/// Returns what was found at the address instead of the admin endpoint of a cache server.
pub(super) fn sample(client: &Client) -> Result<Sample, String> {
    let (sample, address) = (metrics(client)?, client.address());
    let report = report(client)?.map_err(|refused| format!("{address}: {refused}"))?;
    Ok(Sample { report, ..sample })
}

/// Fetches the current metrics of the server.
fn metrics(client: &Client) -> Result<Sample, String> {
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
    Sample::parse(&text).map_err(|problem| another_server(address, &problem))
}

/// Fetches the report of the server. A server of an earlier version has none. The second error is
/// that of a refused token.
fn report(client: &Client) -> Result<Result<Report, String>, String> {
    let address = client.address();
    let reply = client.request("/live.json").map_err(|error| format!("{address}: {error}"))?;
    match reply.status {
        200 => Report::parse(&reply.body).map(Ok).map_err(|text| another_server(address, &text)),
        404 => Ok(Ok(Report::default())),
        UNAUTHORIZED | TOO_MANY_REQUESTS => Ok(Err(reply.body.trim().to_owned())),
        _ => Err(format!("{address}: {}", reply.body.trim())),
    }
}

/// Fetches samples again and again.
pub(super) struct Fetcher {
    client: Client,
    /// Why the server has refused the token.
    refused: Option<String>,
}

impl Fetcher {
    pub(super) fn new(client: Client) -> Self {
        Self { client, refused: None }
    }

    /// Fetches the current counters of the server. If the server refuses the token, it is not
    /// presented again: wrong tokens would keep the right one of other clients out.
    ///
    /// # Errors
    ///
    /// Those of [`sample`].
    pub(super) fn sample(&mut self) -> Result<Sample, String> {
        let sample = metrics(&self.client)?;
        let mut report = report(&self.client)?;
        if let Err(refused) = &report
            && self.client.drop_token()
        {
            self.refused = Some(refused.clone());
            report = self::report(&self.client)?;
        }
        let report = report.map_err(|refused| format!("{}: {refused}", self.client.address()))?;
        Ok(Sample { report, refused_token: self.refused.clone(), ..sample })
    }
}

fn another_server(address: &Address, problem: &dyn Display) -> String {
    format!(
        "{address}: expected the admin endpoint of nuthatch serve, found another server: \
         {problem}; use the address of --admin of the cache server (default: {DEFAULT_ADMIN})"
    )
}
