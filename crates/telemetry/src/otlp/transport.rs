//! One request to the collector.

use super::config::Config;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use std::io;
use std::time::Duration;
use url::Url;

/// Maximum bytes of a response that are read.
const MAX_RESPONSE_LEN: usize = 64 << 10;

/// What became of a request.
#[derive(Debug)]
pub(super) enum Sent {
    /// The collector has the items, except some that it rejected.
    Accepted { rejected: u64, message: String },
    /// A later attempt can succeed.
    Unavailable { reason: String, retry_after: Option<Duration> },
    /// Another attempt would fail as well.
    Refused { reason: String },
}

/// The client of a collector.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    client: Client,
    url: Url,
}

impl Transport {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// Fails if the certificates of the system cannot be read.
    pub(super) fn client(config: &Config) -> io::Result<Client> {
        let mut headers = HeaderMap::new();
        headers.clone_from(&config.headers);
        let client = Client::builder()
            .default_headers(headers)
            .timeout(config.timeout)
            // Headers with secrets are sent to the configured address only.
            .redirect(Policy::none())
            .no_proxy()
            .build();
        client.map_err(|error| io::Error::other(format!("--otlp: {}", reason(error))))
    }

    /// Returns the transport of a signal: logs, metrics or traces.
    pub(super) fn new(client: &Client, config: &Config, signal: &str) -> Self {
        Self { client: client.clone(), url: config.url(signal) }
    }

    /// Sends a message once.
    pub(super) async fn send(&self, message: Vec<u8>) -> Sent {
        let request = self.client.post(self.url.clone());
        let request = request.header(CONTENT_TYPE, "application/x-protobuf").body(message);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Sent::Unavailable { reason: reason(error), retry_after: None },
        };
        let status = response.status().as_u16();
        if response.status().is_success() {
            let (rejected, message) = rejected(response).await;
            return Sent::Accepted { rejected, message };
        }
        let reason = format!("the collector answered with status {status}");
        if ![429, 502, 503, 504].contains(&status) {
            return Sent::Refused { reason };
        }
        let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        Sent::Unavailable { reason, retry_after }
    }
}

/// Returns how many items the collector rejected, and why. A response that cannot be read is one
/// without rejected items: the status has said that they were accepted.
async fn rejected(mut response: Response) -> (u64, String) {
    let mut body = Vec::new();
    while let Ok(Some(part)) = response.chunk().await {
        if body.len() + part.len() > MAX_RESPONSE_LEN {
            return (0, String::new());
        }
        body.extend_from_slice(&part);
    }
    // The responses of all signals have the same fields.
    let response = ExportLogsServiceResponse::decode(&body[..]).unwrap_or_default();
    let partial = response.partial_success.unwrap_or_default();
    (u64::try_from(partial.rejected_log_records).unwrap_or(0), partial.error_message)
}

/// Returns why a request failed, without its address.
fn reason(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "the collector did not answer in time".to_owned();
    }
    let what = if error.is_connect() { "cannot connect" } else { "the connection was lost" };
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    format!("{what}: {innermost}")
}
