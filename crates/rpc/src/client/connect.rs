//! From an address to a connection.

use crate::error::{Error, Result};
use crate::proto::store_client::StoreClient;
use crate::tls::ClientTls;
use std::fmt;
use std::time::Duration;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, ConnectError, Request, Status};

/// The port of addresses without one.
pub const DEFAULT_PORT: u16 = 7380;

/// Bytes that a server may send before the client has looked at them: for a call, and for all.
const CALL_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
/// Bytes of a frame: one message of a scan should not be many.
const FRAME: u32 = 256 << 10;
/// A server that does not answer to a sign of life for so long is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// The calls of a server, with a token where there is one.
pub(super) type Calls = StoreClient<InterceptedService<Channel, Bearer>>;

/// Options of a [`Client`](crate::Client).
#[derive(Clone)]
pub struct ClientOptions {
    tls: Option<ClientTls>,
    token: Option<String>,
    insecure: bool,
    connect_timeout: Duration,
    window: u32,
    message_bytes: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) retries: u32,
}

impl ClientOptions {
    /// A client without a token, which tries three times again.
    pub fn new() -> Self {
        Self {
            tls: None,
            token: None,
            insecure: false,
            connect_timeout: Duration::from_secs(10),
            window: CALL_WINDOW,
            message_bytes: 64 << 20,
            timeout: None,
            retries: 3,
        }
    }

    /// What `grpcs://` needs.
    #[must_use]
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// A token to show with each call.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sends the token without TLS, too, to other machines than this one.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// How long a connection may take; 10 seconds by default.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long a call may take that has one answer; without a limit by default.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// How often a call is tried again that may be; 3 times by default.
    #[must_use]
    pub fn retries(mut self, most: u32) -> Self {
        self.retries = most;
        self
    }

    /// How long an answer may be, in bytes; 64 MiB by default.
    #[must_use]
    pub fn message_bytes(mut self, most: usize) -> Self {
        self.message_bytes = most;
        self
    }

    /// How many bytes of a stream may be on their way, in bytes; 2 MiB by default.
    #[must_use]
    pub fn window_bytes(mut self, bytes: u32) -> Self {
        self.window = bytes.clamp(1, i32::MAX.unsigned_abs());
        self
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions").field("retries", &self.retries).finish_non_exhaustive()
    }
}

/// Puts the token on each call.
#[derive(Clone)]
pub(super) struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

pub(super) async fn connect(address: &str, options: &ClientOptions) -> Result<Calls> {
    let endpoint = endpoint(address, options)?;
    let token = options.token.as_ref().map(|token| format!("Bearer {token}").parse()).transpose();
    let mut token: Option<MetadataValue<Ascii>> =
        token.map_err(|_| Error::argument("token: expected printable ASCII"))?;
    if let Some(token) = &mut token {
        token.set_sensitive(true);
    }
    let mut failures = 0;
    let channel = loop {
        match endpoint.connect().await {
            Ok(channel) => break channel,
            Err(_) if failures < options.retries => {
                failures += 1;
                tokio::time::sleep(super::pause(failures)).await;
            }
            Err(error) => {
                let error = Error::transport(&error);
                let message = format!("{address}: {}", error.message());
                return Err(Error::new(Code::Unavailable, "transport", message));
            }
        }
    };
    let calls = StoreClient::with_interceptor(channel, Bearer(token));
    Ok(calls.max_decoding_message_size(options.message_bytes))
}

fn endpoint(address: &str, options: &ClientOptions) -> Result<Endpoint> {
    let wrong = |problem: &str| Error::argument(format!("{address}: {problem}"));
    let (tls, place) = match (address.strip_prefix("grpc://"), address.strip_prefix("grpcs://")) {
        (Some(place), _) => (false, place),
        (_, Some(place)) => (true, place),
        _ => return Err(wrong("expected grpc://host:port or grpcs://host:port")),
    };
    let authority: http::uri::Authority =
        place.trim_end_matches('/').parse().map_err(|_| wrong("expected a host and a port"))?;
    let (host, port) = (authority.host(), authority.port_u16().unwrap_or(DEFAULT_PORT));
    if host.is_empty() || authority.as_str().contains('@') {
        return Err(wrong("expected a host and a port, and nothing before them"));
    }
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let here = literal.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if options.token.is_some() && !(tls || here || host == "localhost" || options.insecure) {
        return Err(wrong("a token could be read on its way; expected grpcs://"));
    }
    let scheme = if tls { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{host}:{port}"));
    let endpoint = endpoint.map_err(|_| wrong("expected a host and a port"))?;
    let endpoint = endpoint
        .connect_timeout(options.connect_timeout)
        .tcp_nodelay(true)
        .initial_stream_window_size(options.window)
        .initial_connection_window_size(CONNECTION_WINDOW.max(options.window))
        .max_frame_size(FRAME)
        .http2_keep_alive_interval(SIGN_OF_LIFE)
        .keep_alive_timeout(SIGN_OF_LIFE);
    match (&options.tls, tls) {
        (Some(tls), true) => {
            let endpoint = endpoint.tls_config(tls.0.clone());
            endpoint.map_err(|error| wrong(Error::transport(&error).message()))
        }
        (None, true) => Err(wrong("expected certificates that the server's leads to, found none")),
        (Some(_), false) => Err(wrong("expected grpcs:// where there are certificates")),
        (None, false) => Ok(endpoint),
    }
}

/// Whether a call failed before any of it was sent.
pub(super) fn never_sent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_scheme_and_perhaps_a_port() {
        let uri = |address: &str| {
            endpoint(address, &ClientOptions::new()).map(|endpoint| endpoint.uri().to_string())
        };
        assert_eq!(uri("grpc://db:99").expect("an address"), "http://db:99/");
        assert_eq!(uri("grpc://db/").expect("an address"), "http://db:7380/");
        assert_eq!(uri("grpc://[::1]").expect("an address"), "http://[::1]:7380/");
        for (wrong, problem) in [
            ("db:99", "expected grpc://host:port or grpcs://host:port"),
            ("http://db", "expected grpc://host:port or grpcs://host:port"),
            ("grpc://", "expected a host and a port"),
            ("grpc://a b", "expected a host and a port"),
            ("grpc://db/more", "expected a host and a port"),
            ("grpc://me@db", "nothing before them"),
            ("grpcs://db", "expected certificates"),
        ] {
            let error = uri(wrong).expect_err(wrong);
            assert!(error.message().contains(problem) && error.code() == "argument", "{error}");
        }
    }

    #[test]
    fn tokens_go_to_other_machines_with_tls_alone() {
        let options = ClientOptions::new().token("robin");
        for here in ["grpc://127.0.0.1:1", "grpc://[::1]:1", "grpc://localhost"] {
            assert!(endpoint(here, &options).is_ok(), "{here}");
        }
        let error = endpoint("grpc://db", &options).expect_err("a token in the open");
        assert!(error.message().contains("expected grpcs://"), "{error}");
        assert!(endpoint("grpc://db", &options.insecure(true)).is_ok());
    }
}
