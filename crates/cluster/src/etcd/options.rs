//! Endpoints, credentials and limits of connections to etcd.

use super::login::Credentials;
use super::tls::{EtcdTls, Security};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use tonic::codegen::http::uri::Authority;
use tonic::transport::{Channel, Endpoint};

/// The port of endpoints without a port.
const DEFAULT_PORT: u16 = 2379;
/// The pause between HTTP/2 pings of a connection, and how long it waits for the reply.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// Less than the deadline of requests, so that an error says that there is no connection.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1500);

/// Why options are invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdError(String);

impl fmt::Display for EtcdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EtcdError {}

/// Where etcd is, and how to connect.
#[derive(Clone)]
pub struct EtcdOptions {
    endpoints: Vec<String>,
    tls: Option<EtcdTls>,
    pub(super) credentials: Option<Credentials>,
}

impl EtcdOptions {
    /// Creates options for the members of a cluster of etcd, each as `host:port` or `host`.
    ///
    /// # Errors
    ///
    /// Fails without endpoints, or if one has another syntax.
    pub fn new<E: AsRef<str>>(endpoints: &[E]) -> Result<Self, EtcdError> {
        if endpoints.is_empty() {
            return Err(EtcdError("expected at least one endpoint of etcd, found none".into()));
        }
        let endpoints = endpoints.iter().map(|endpoint| authority(endpoint.as_ref()));
        Ok(Self { endpoints: endpoints.collect::<Result<_, _>>()?, tls: None, credentials: None })
    }

    /// Connects with TLS.
    #[must_use]
    pub fn tls(mut self, tls: EtcdTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Logs in as a user of etcd.
    #[must_use]
    pub fn credentials(mut self, user: &str, password: &str) -> Self {
        let (user, password) = (user.to_owned(), password.to_owned());
        self.credentials = Some(Credentials { user, password });
        self
    }

    /// Returns how connections are secured.
    pub(super) fn security(&self) -> Security {
        self.tls.as_ref().map_or(Security::None, |tls| tls.security)
    }

    /// Returns the endpoints, each as `host:port`.
    pub(super) fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Returns the first endpoint on another machine, as `host:port`. Requests to it cross a
    /// network.
    #[must_use]
    pub fn remote_endpoint(&self) -> Option<&str> {
        let is_remote = |endpoint: &&String| {
            let Ok(authority) = endpoint.parse::<Authority>() else { return true };
            let host = authority.host().trim_start_matches('[').trim_end_matches(']');
            let is_loopback = host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
            !is_loopback && !host.eq_ignore_ascii_case("localhost")
        };
        self.endpoints.iter().find(is_remote).map(String::as_str)
    }

    /// Returns a channel for each endpoint. It connects when it is used first, and again when the
    /// connection was lost.
    pub(super) fn channels(&self) -> Result<Vec<Channel>, EtcdError> {
        let channel = |authority: &String| {
            let error = |problem: &dyn fmt::Display| EtcdError(format!("{authority}: {problem}"));
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}"));
            let endpoint = endpoint
                .map_err(|problem| error(&problem))?
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT)
                .keep_alive_while_idle(true);
            let Some(tls) = &self.tls else { return Ok(endpoint.connect_lazy()) };
            let endpoint = endpoint.tls_config(tls.config.clone().timeout(CONNECT_TIMEOUT));
            Ok(endpoint.map_err(|problem| error(&problem))?.connect_lazy())
        };
        self.endpoints.iter().map(channel).collect()
    }
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

/// Checks an endpoint, and adds the default port.
fn authority(endpoint: &str) -> Result<String, EtcdError> {
    let error =
        || EtcdError(format!("expected an endpoint of etcd as host:port, found {endpoint:?}"));
    let authority: Authority = endpoint.parse().map_err(|_| error())?;
    let has_port = authority.as_str().len() > authority.host().len();
    match authority.port_u16() {
        _ if authority.host().is_empty() || authority.as_str().contains('@') => Err(error()),
        Some(0) => Err(error()),
        None if has_port => Err(error()),
        None => Ok(format!("{endpoint}:{DEFAULT_PORT}")),
        Some(_) => Ok(endpoint.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_host_and_perhaps_a_port() {
        let found = |endpoint: &str| EtcdOptions::new(&[endpoint]).map(|found| found.endpoints);
        assert_eq!(found("etcd-1:99"), Ok(vec!["etcd-1:99".to_owned()]));
        assert_eq!(found("etcd-1"), Ok(vec!["etcd-1:2379".to_owned()]));
        assert_eq!(found("[::1]"), Ok(vec!["[::1]:2379".to_owned()]));
        for wrong in ["", ":1", "http://etcd:1", "a b", "me:secret@etcd", "etcd:0", "etcd:70000"] {
            let error = found(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with("expected an endpoint of etcd as host:port"), "{error}");
        }
        assert!(EtcdOptions::new::<&str>(&[]).is_err());
    }

    #[test]
    fn endpoints_on_other_machines_are_told_apart() {
        let remote = |endpoints: &[&str]| {
            let options = EtcdOptions::new(endpoints).expect("endpoints");
            options.remote_endpoint().map(str::to_owned)
        };
        assert_eq!(remote(&["127.0.0.1", "[::1]:1", "localhost:2", "LOCALHOST"]), None);
        assert_eq!(remote(&["127.0.0.1", "etcd-1"]).as_deref(), Some("etcd-1:2379"));
        assert_eq!(remote(&["10.0.0.1:9"]).as_deref(), Some("10.0.0.1:9"));
        assert_eq!(
            remote(&["127.0.0.1.example.com"]).as_deref(),
            Some("127.0.0.1.example.com:2379")
        );
    }

    #[test]
    fn a_password_is_in_no_debug_output() {
        let options = EtcdOptions::new(&["etcd"]).expect("options").credentials("me", "s3cret");
        let shown = format!("{options:?} {:?}", options.credentials);
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
