//! Connects to an address, and the options of clients.

use super::resume::{Patience, pause};
use super::tls::ClientTls;
use crate::error::{Error, Result};
use crate::messages::proto::store_client::StoreClient;
use crate::transport::{is_unsent, tls_failure};
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// The port of addresses without a port.
pub const DEFAULT_PORT: u16 = 7380;

/// The flow-control windows of HTTP/2 in bytes: how much the server may send before the client has
/// read it, for one call and for all calls of the connection.
const CALL_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
/// The maximum length of a frame in bytes: a message of a scan needs only a few frames.
const FRAME: u32 = 256 << 10;

/// The syntax of tokens, for error messages.
const TOKEN_RULE: &str = "expected printable ASCII without spaces, which is the text that the \
                          server's file of tokens has after `>`";

/// The calls of a server, with a token if the options have one.
pub(super) type Calls = StoreClient<InterceptedService<Channel, Bearer>>;

/// Options of a [`Client`](crate::Client).
#[derive(Clone)]
pub struct ClientOptions {
    tls: Option<ClientTls>,
    token: Option<String>,
    insecure: bool,
    connect_timeout: Duration,
    keepalive: Duration,
    window: u32,
    message_bytes: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) retries: u32,
    pub(super) reconnect: Duration,
}

impl ClientOptions {
    /// Returns the defaults: no token, three retries, timeouts of 10 seconds to connect and 30
    /// seconds for a call.
    pub fn new() -> Self {
        Self {
            tls: None,
            token: None,
            insecure: false,
            connect_timeout: Duration::from_secs(10),
            keepalive: Duration::from_secs(20),
            window: CALL_WINDOW,
            message_bytes: 64 << 20,
            timeout: Some(Duration::from_secs(30)),
            retries: 3,
            reconnect: Duration::from_secs(30),
        }
    }

    /// Sets the CA certificates and the client certificate for `grpcs://`. By default the client
    /// trusts the CA certificates of the system.
    #[must_use]
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the token that is sent with each call.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sets whether the token may be sent to other machines without TLS; `false` by default.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Sets the maximum duration of [`Client::connect`](crate::Client::connect) with its retries,
    /// and of each later attempt to reconnect; 10 seconds by default.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets the maximum duration of a unary call with its retries, of the start of a stream, and of
    /// the wait for a response of a transaction; 30 seconds by default. `None` is no limit.
    ///
    /// A write that fails with this timeout may have been executed, or may still be executed.
    #[must_use]
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.timeout = limit.into();
        self
    }

    /// Sets the interval of HTTP/2 pings while a call waits and the server sends nothing, and the
    /// time that the server has to respond to one; 20 seconds by default. Without a response the
    /// connection counts as lost.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration) -> Self {
        self.keepalive = interval;
        self
    }

    /// Sets the maximum number of retries of a call that may be retried; 3 by default. With 0,
    /// watches and writers do not reconnect either.
    #[must_use]
    pub fn retries(mut self, max: u32) -> Self {
        self.retries = max;
        self
    }

    /// Sets how long a watch, a writer, or a scan [across
    /// transactions](crate::client::Scan::across_transactions) tries to reconnect after a lost
    /// connection; 30 seconds by default. The time begins with each lost connection. The error of
    /// the last attempt names it.
    #[must_use]
    pub fn reconnect(mut self, limit: Duration) -> Self {
        self.reconnect = limit;
        self
    }

    /// Returns how long streams try to reconnect.
    pub(super) fn patience(&self) -> Patience {
        if self.retries == 0 { Patience::Retries(0) } else { Patience::Time(self.reconnect) }
    }

    /// Sets the maximum length of a response in bytes; 64 MiB by default.
    #[must_use]
    pub fn message_bytes(mut self, max: usize) -> Self {
        self.message_bytes = max;
        self
    }

    /// Sets the flow-control window of a stream in bytes; 2 MiB by default.
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

/// Adds the token to each call.
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
    if options.token.as_deref().is_some_and(|token| !is_token(token)) {
        return Err(Error::argument(format!("token: {TOKEN_RULE}")));
    }
    let token = options.token.as_ref().map(|token| format!("Bearer {token}").parse()).transpose();
    let mut token: Option<MetadataValue<Ascii>> =
        token.map_err(|_| Error::argument(format!("token: {TOKEN_RULE}")))?;
    if let Some(token) = &mut token {
        token.set_sensitive(true);
    }
    let mut last = None;
    let connecting = timeout(options.connect_timeout, retry(&endpoint, options, &mut last)).await;
    let channel = connecting.unwrap_or_else(|_| {
        let within = format!("could not connect within {:?}", options.connect_timeout);
        let reason = last.map_or_else(String::new, |reason| format!("; {reason}"));
        let remedy = "`connect_timeout` (--connect-timeout-ms) sets the limit";
        Err(format!("{within}{reason}; {remedy}"))
    });
    let unavailable =
        |message| Error::new(Code::Unavailable, "transport", format!("{address}: {message}"));
    let channel = channel.map_err(unavailable)?;
    let calls = StoreClient::with_interceptor(channel, Bearer(token));
    Ok(calls.max_decoding_message_size(options.message_bytes))
}

/// Connects, with retries. Sets `last` to the reason why the last attempt failed.
async fn retry(
    endpoint: &Endpoint,
    options: &ClientOptions,
    last: &mut Option<String>,
) -> Result<Channel, String> {
    let mut failures = 0;
    loop {
        let error = match endpoint.connect().await {
            Ok(channel) => return Ok(channel),
            Err(error) => error,
        };
        let mut reason = Error::transport(&error).message().to_owned();
        if let Some(remedy) = tls_failure(&error).and_then(|tls| remedy(options, tls)) {
            reason = format!("{reason}; {remedy}");
        }
        // A problem with certificates is permanent.
        if failures >= options.retries || tls_failure(&error).is_some() {
            return Err(reason);
        }
        *last = Some(reason);
        failures += 1;
        tokio::time::sleep(pause(failures)).await;
    }
}

/// Returns whether a text can be a token.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
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
    let (host, port) = (authority.host(), authority.port_u16());
    if host.is_empty() || authority.as_str().contains('@') {
        return Err(wrong("expected a host and a port, and nothing before them"));
    }
    let has_port = authority.as_str().len() > host.len();
    if port == Some(0) || port.is_none() && has_port {
        return Err(wrong("expected a port from 1 to 65535"));
    }
    let port = port.unwrap_or(DEFAULT_PORT);
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let here = literal.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if options.token.is_some() && !(tls || here || host == "localhost" || options.insecure) {
        return Err(wrong("the token would be sent unencrypted; expected grpcs://"));
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
        .http2_keep_alive_interval(options.keepalive)
        .keep_alive_timeout(options.keepalive);
    let with = |tls: &ClientTls| {
        let configured = endpoint.clone().tls_config(tls.config(options.connect_timeout));
        configured.map_err(|error| wrong(Error::transport(&error).message()))
    };
    match (&options.tls, tls) {
        (Some(tls), true) => with(tls),
        (None, true) => with(&ClientTls::system().map_err(|error| wrong(&error.to_string()))?),
        (Some(_), false) => Err(wrong("expected grpcs://, which certificates are for")),
        (None, false) => Ok(endpoint),
    }
}

/// Returns advice for a refused certificate, with the file that it was compared with.
fn remedy(options: &ClientOptions, error: &rustls::Error) -> Option<String> {
    use rustls::CertificateError as Certificate;
    let rustls::Error::InvalidCertificate(problem) = error else { return None };
    match problem {
        Certificate::UnknownIssuer | Certificate::BadSignature => {
            let ca = options.tls.as_ref().and_then(ClientTls::ca);
            let trusted = ca.map_or("the system's certificates were used".to_owned(), |ca| {
                format!("those of {} were used", ca.display())
            });
            Some(format!("{trusted}; name a PEM file with the issuer's (--tls-ca, `ca`)"))
        }
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
            Some("use a name that the certificate has, or give it as `server_name`".to_owned())
        }
        _ => None,
    }
}

/// Returns whether a call failed before any of it was sent.
pub(super) fn never_sent(status: &Status) -> bool {
    std::error::Error::source(status).is_some_and(is_unsent)
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
            ("grpc://db:70000", "expected a port from 1 to 65535"),
            ("grpc://[::1]:70000", "expected a port from 1 to 65535"),
            ("grpc://db:0", "expected a port from 1 to 65535"),
            ("grpc://db:", "expected a port from 1 to 65535"),
        ] {
            let error = uri(wrong).expect_err(wrong);
            assert!(error.message().contains(problem) && error.code() == "argument", "{error}");
        }
    }

    #[test]
    fn streams_reconnect_for_30_seconds_by_default_and_not_without_retries() {
        let patience = |options: ClientOptions| format!("{:?}", options.patience());
        assert_eq!(patience(ClientOptions::new()), "Time(30s)");
        assert_eq!(patience(ClientOptions::default().retries(0)), "Retries(0)");
        let short = ClientOptions::new().reconnect(Duration::from_millis(5));
        assert_eq!(patience(short), "Time(5ms)");
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
