//! A connection to another node of the cluster, which speaks RESP as clients do.

use super::endpoint::Endpoint;
use super::reply_end::ReplyEnd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The maximum time to connect to an address of a node, and to send a request.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause between two checks whether a reply is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum length of a reply. Those to requests of nodes are short.
const MAX_REPLY_LEN: usize = 4096;

/// How a node connects to the others: as a client.
#[derive(Clone, Default)]
pub struct NodeAccess {
    /// The user. `None` for the default user.
    pub user: Option<String>,
    /// The password. `None` without a login.
    pub password: Option<String>,
    /// TLS, if the nodes use it.
    pub tls: Option<Arc<ClientConfig>>,
    /// The maximum bytes of items that are sent in a second. 0 for no limit.
    pub bytes_per_s: u64,
}

impl fmt::Debug for NodeAccess {
    /// Formats without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeAccess").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a request to another node has no successful reply.
#[derive(Debug)]
pub(super) enum CallError {
    /// The connection failed.
    Io(io::Error),
    /// The other node replied with an error.
    Refused(String),
    /// The reply is not wanted any more.
    Cancelled,
    /// There is no memory for the reply.
    TooLong,
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// A connection to another node.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// The same socket, below TLS.
    socket: Arc<TcpStream>,
    /// Bytes that were received after the last reply.
    received: Vec<u8>,
}

impl Connection {
    /// Connects to a node and logs in. `is_wanted` is called from time to time.
    pub(super) fn open(
        endpoint: &Endpoint,
        access: &NodeAccess,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Self, CallError> {
        let stream = connect(endpoint)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(POLL_INTERVAL))?;
        stream.set_write_timeout(Some(SEND_TIMEOUT))?;
        let socket = Arc::new(stream.try_clone()?);
        let stream: Box<dyn Stream> = match &access.tls {
            None => Box::new(stream),
            Some(config) => {
                let name = ServerName::try_from(endpoint.host.clone()).map_err(io::Error::other)?;
                let tls = ClientConnection::new(Arc::clone(config), name);
                Box::new(StreamOwned::new(tls.map_err(io::Error::other)?, stream))
            }
        };
        let mut connection = Self { stream, socket, received: Vec::new() };
        if let Some(password) = &access.password {
            let user = access.user.as_deref();
            let login: Vec<&[u8]> = [Some("AUTH"), user, Some(password)]
                .into_iter()
                .flatten()
                .map(str::as_bytes)
                .collect();
            connection.send(&login)?;
            connection.reply(is_wanted)?;
        }
        Ok(connection)
    }

    /// Sends a request.
    pub(super) fn send(&mut self, arguments: &[&[u8]]) -> Result<(), CallError> {
        let mut head = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            write!(head, "${}\r\n", argument.len())?;
            if argument.len() > MAX_REPLY_LEN {
                // A long argument is not copied.
                self.stream.write_all(&head)?;
                self.stream.write_all(argument)?;
                head.clear();
            } else {
                head.extend_from_slice(argument);
            }
            head.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&head)?;
        Ok(self.stream.flush()?)
    }

    /// Sends the bytes of requests.
    pub(super) fn write(&mut self, requests: &[u8]) -> Result<(), CallError> {
        self.stream.write_all(requests)?;
        Ok(self.stream.flush()?)
    }

    /// Returns the socket, to be shut down by another thread while the connection exists.
    pub(super) fn socket(&self) -> Weak<TcpStream> {
        Arc::downgrade(&self.socket)
    }

    /// Returns whether the next request can be sent: all replies were received, and the other node
    /// has not closed the connection.
    pub(super) fn is_idle(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let has_more = recv(&self.socket, &mut [0_u8; 1], flags);
        self.received.is_empty() && matches!(has_more, Err(Errno::AGAIN))
    }

    /// Waits for the next reply, which may be long. Fails if nothing arrives for this time, or if
    /// `has_room` returns false for the bytes that were received.
    pub(super) fn whole_reply(
        &mut self,
        max_silence: Duration,
        is_wanted: &dyn Fn() -> bool,
        has_room: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<u8>, CallError> {
        let mut end = ReplyEnd::default();
        let (mut until, mut len) = (Instant::now() + max_silence, 0);
        loop {
            if let Some(len) = end.find(&self.received).map_err(io::Error::other)? {
                let rest = self.received.split_off(len);
                return Ok(std::mem::replace(&mut self.received, rest));
            }
            if self.received.len() > len {
                if !has_room(self.received.len()) {
                    return Err(CallError::TooLong);
                }
                (until, len) = (Instant::now() + max_silence, self.received.len());
            }
            self.receive(until, is_wanted)?;
        }
    }

    /// Waits for the next reply, which is a line. Returns its text.
    pub(super) fn reply(&mut self, is_wanted: &dyn Fn() -> bool) -> Result<String, CallError> {
        let until = Instant::now() + REPLY_TIMEOUT;
        let end = loop {
            if let Some(end) = self.received.windows(2).position(|two| two == b"\r\n") {
                break end;
            }
            if self.received.len() > MAX_REPLY_LEN {
                return Err(io::Error::other("expected a line, found a longer reply").into());
            }
            self.receive(until, is_wanted)?;
        };
        let line: Vec<u8> = self.received.drain(..end + 2).take(end).collect();
        match line.split_first() {
            Some((b'+', text)) => Ok(String::from_utf8_lossy(text).into_owned()),
            Some((b'-', text)) => {
                Err(CallError::Refused(String::from_utf8_lossy(text).into_owned()))
            }
            _ => {
                let found = line.escape_ascii();
                Err(io::Error::other(format!("expected a reply of RESP, found {found}")).into())
            }
        }
    }

    fn receive(&mut self, until: Instant, is_wanted: &dyn Fn() -> bool) -> Result<(), CallError> {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Ok(len) => self.received.extend_from_slice(&buffer[..len]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error.into()),
        }
        if Instant::now() >= until {
            let text = "expected a reply in time, found none";
            return Err(io::Error::new(ErrorKind::TimedOut, text).into());
        }
        if is_wanted() { Ok(()) } else { Err(CallError::Cancelled) }
    }
}

fn connect(Endpoint { host, port }: &Endpoint) -> io::Result<TcpStream> {
    let mut last = None;
    for address in (host.as_str(), *port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("the name of the node has no address")))
}
