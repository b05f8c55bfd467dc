//! Endpoints, credentials and limits of connections to etcd.

use super::tls::EtcdTls;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

/// The port of endpoints without a port.
const DEFAULT_PORT: u16 = 2379;
/// The pause between HTTP/2 pings of a connection, and how long it waits for the reply.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why options are invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdError(String);

impl fmt::Display for EtcdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EtcdError {}

/// A user of etcd. The password is not printed.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

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

    /// Reads the user and the password from a file with one line, `USER:PASSWORD`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or has another content. The error does not contain it.
    pub fn credentials(mut self, file: &Path) -> Result<Self, EtcdError> {
        let error = |problem: &str| EtcdError(format!("{}: {problem}", file.display()));
        let text = std::fs::read_to_string(file)
            .map_err(|problem| error(&format!("expected a user and a password: {problem}")))?;
        match text.trim_end_matches(['\n', '\r']).split_once(':') {
            Some((user, password)) if !user.is_empty() && !password.contains(['\n', '\r']) => {
                let (user, password) = (user.to_owned(), password.to_owned());
                self.credentials = Some(Credentials { user, password });
                Ok(self)
            }
            _ => Err(error("expected one line, USER:PASSWORD, found another content")),
        }
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
            let endpoint = endpoint.tls_config(tls.config.clone());
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
    let authority: tonic::codegen::http::uri::Authority = endpoint.parse().map_err(|_| error())?;
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
    fn a_password_is_in_no_error_and_no_debug_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("password");
        let options = EtcdOptions::new(&["etcd"]).expect("options");
        for wrong in ["s3cret", ":s3cret", "me:s3cret\nmore", ""] {
            std::fs::write(&file, wrong).expect("a file");
            let error = options.clone().credentials(&file).expect_err(wrong).to_string();
            assert!(error.contains("expected one line, USER:PASSWORD"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        std::fs::write(&file, "me:s3cret:x\n").expect("a file");
        let options = options.credentials(&file).expect("credentials");
        assert!(!format!("{options:?}").contains("s3cret"));
        let credentials = options.credentials.expect("credentials");
        assert_eq!((credentials.user.as_str(), credentials.password.as_str()), ("me", "s3cret:x"));
    }
}
