//! A client of the admin endpoint.

use crate::address::Address;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONNECTION, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;

/// Maximum bytes of a response. A server with every command executed sends a tenth of that.
const MAX_RESPONSE_LEN: usize = 16 << 20;

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status of HTTP, such as 200.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// Sends requests to the admin endpoint of a server, which may be another process.
#[derive(Debug)]
pub struct Client {
    address: Address,
    timeout: Duration,
    token: Option<Token>,
    runtime: Runtime,
}

/// A token, whose `Debug` does not show it.
struct Token(HeaderValue);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Client {
    /// Creates a client of this address. `timeout` limits the time of each request.
    ///
    /// # Errors
    ///
    /// The error of the system if no runtime can be created.
    pub fn new(address: Address, timeout: Duration) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { address, timeout, token: None, runtime })
    }

    /// Sets the token that requests present, for private values.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the token has control characters.
    pub fn with_token(mut self, token: &str) -> io::Result<Self> {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let mut value = value.map_err(invalid)?;
        value.set_sensitive(true);
        self.token = Some(Token(value));
        Ok(self)
    }

    /// Removes the token, so that later requests have none.
    pub fn drop_token(&mut self) {
        self.token = None;
    }

    /// Returns the address that requests are sent to.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the body of the response for this path. Opens a connection for each request.
    ///
    /// # Errors
    ///
    /// Those of [`Self::request`], or the status of the response if it is not 200.
    pub fn get(&self, path: &str) -> io::Result<String> {
        let reply = self.request(path)?;
        if reply.status == 200 {
            return Ok(reply.body);
        }
        let text = format!("GET {path}: expected status 200, found {}", reply.status);
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// Returns the response for this path, with any status. Opens a connection for each request.
    ///
    /// # Errors
    ///
    /// The error of the connection, such as [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the
    /// server closes it early, or a timeout.
    pub fn request(&self, path: &str) -> io::Result<Reply> {
        self.send(path, self.token.as_ref())
    }

    /// Returns the response for this path to a request without the token.
    ///
    /// # Errors
    ///
    /// Those of [`Self::request`].
    pub fn request_without_token(&self, path: &str) -> io::Result<Reply> {
        self.send(path, None)
    }

    fn send(&self, path: &str, token: Option<&Token>) -> io::Result<Reply> {
        let response = async {
            match &self.address {
                Address::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    Self::ask(stream, &address.to_string(), path, token).await
                }
                Address::Unix(file) => {
                    let stream = UnixStream::connect(file).await?;
                    Self::ask(stream, "localhost", path, token).await
                }
            }
        };
        let late = || {
            let text = format!("expected a response within {:?}, found none", self.timeout);
            io::Error::new(io::ErrorKind::TimedOut, text)
        };
        self.runtime.block_on(async { timeout(self.timeout, response).await.map_err(|_| late())? })
    }

    async fn ask<S>(stream: S, host: &str, path: &str, token: Option<&Token>) -> io::Result<Reply>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let connection = tokio::spawn(connection);
        let mut request = Request::get(path).header(HOST, host).header(CONNECTION, "close");
        if let Some(Token(token)) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_LEN);
        let body = body.collect().await.map_err(broken)?.to_bytes();
        connection.abort();
        let body = String::from_utf8(body.into())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Reply { status, body })
    }
}

/// Returns the error of a connection that the server closes early, or any other error as it is.
fn broken(error: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    let error = error.into();
    let first: &(dyn Error + 'static) = error.as_ref();
    let chain: Vec<_> = std::iter::successors(Some(first), |&error| error.source()).collect();
    let is_closed = |error: &hyper::Error| {
        error.is_closed() || error.is_incomplete_message() || error.is_canceled()
    };
    let mut of_http = chain.iter().filter_map(|error| error.downcast_ref::<hyper::Error>());
    let cause = chain.iter().find_map(|error| error.downcast_ref::<io::Error>());
    // A request is canceled if the connection ends, also by a response that is not HTTP.
    let is_other = of_http.clone().any(hyper::Error::is_parse);
    if is_other || cause.is_none() && !of_http.any(is_closed) {
        return io::Error::other(error);
    }
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = format!("the server closed the connection before the end of its response{cause}");
    io::Error::new(io::ErrorKind::UnexpectedEof, text)
}
