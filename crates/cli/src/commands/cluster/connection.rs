//! A connection to a node.

use super::reply::Reply;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes in both directions.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A connection to a node.
pub(super) struct Connection {
    address: String,
    stream: BufReader<Box<dyn Stream>>,
    timeout: Duration,
    deadline: Deadline,
}

/// The time until which the reply to a request has to be complete.
#[derive(Clone)]
struct Deadline(Arc<Mutex<Instant>>);

impl Deadline {
    fn after(timeout: Duration) -> Self {
        Self(Arc::new(Mutex::new(Instant::now() + timeout)))
    }

    fn begin(&self, timeout: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + timeout;
    }

    /// Returns the time that is left.
    ///
    /// # Errors
    ///
    /// Fails if none is left.
    fn left(&self) -> io::Result<Duration> {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// A socket whose reads and writes end at the deadline.
struct TimedSocket {
    socket: TcpStream,
    deadline: Deadline,
}

impl Read for TimedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.deadline.left()?))?;
        self.socket.read(buffer)
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.deadline.left()?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Connection {
    /// Connects to an address, with TLS if there is a configuration.
    ///
    /// # Errors
    ///
    /// Returns the address and the problem, as [`request`](Self::request) does.
    pub(super) fn open(
        address: &str,
        tls: Option<&Arc<ClientConfig>>,
        timeout: Duration,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                format!(
                    "nothing listens at {address}: {error}; use the address of --resp of a node"
                )
            }
            _ => format!("{address}: {error}"),
        };
        let deadline = Deadline::after(timeout);
        let socket = connect(address, &deadline).map_err(failed)?;
        let stream = TimedSocket { socket, deadline: deadline.clone() };
        let stream: Box<dyn Stream> = match tls {
            None => Box::new(stream),
            Some(config) => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let name = host.try_into().map_err(|error| format!("{address}: {error}"))?;
                let client = ClientConnection::new(Arc::clone(config), name);
                let client = client.map_err(|error| format!("{address}: {error}"))?;
                Box::new(StreamOwned::new(client, stream))
            }
        };
        let address = address.to_owned();
        Ok(Self { address, stream: BufReader::new(stream), timeout, deadline })
    }

    /// Sends a request, and returns its reply.
    pub(super) fn request(&mut self, words: &[&str]) -> Result<Reply, String> {
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            // Writing to a string cannot fail.
            let _ = write!(bytes, "${}\r\n{word}\r\n", word.len());
        }
        self.deadline.begin(self.timeout);
        let stream = self.stream.get_mut();
        let sent = stream.write_all(bytes.as_bytes()).and_then(|()| stream.flush());
        let reply = sent.and_then(|()| Reply::read(&mut self.stream));
        match reply {
            Ok(Reply::Error(text)) => Err(self.refused(words[0], &text)),
            Ok(reply) => Ok(reply),
            Err(error) => Err(format!("{}: {}", self.address, explained(&error))),
        }
    }

    /// Returns the message for an error reply.
    fn refused(&self, command: &str, text: &str) -> String {
        let text: String = text.chars().filter(|char| !char.is_control()).collect();
        let advice = match text.split(' ').next().unwrap_or_default() {
            "NOAUTH" => "; give the password with --password-file, and the user with --user",
            "WRONGPASS" => "; check --user and --password-file",
            "NOPERM" => "; the user needs the subcommands of CLUSTER, and DBSIZE",
            _ if text.contains("cluster support disabled") => {
                "; expected a node of a cluster: start it with --cluster"
            }
            _ if text.contains("unknown subcommand") => {
                "; expected nuthatch serve of this version or a later one"
            }
            _ => "",
        };
        format!("{}: {command}: {text}{advice}", self.address)
    }
}

fn connect(address: &str, deadline: &Deadline) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, deadline.left()?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns the text of an error, with what a timeout means.
fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "no response within --timeout; the server may need --tls".to_owned()
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            format!("the connection ended: {error}; the server may need --tls, or have none")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    /// Each byte arrived in time, so the reply could take for ever.
    #[test]
    fn the_timeout_is_for_a_whole_reply() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let slow = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            let (_sender, nothing) = channel::<()>();
            while client.write_all(b"+").is_ok() {
                let _ = nothing.recv_timeout(Duration::from_millis(5));
            }
        });
        let timeout = Duration::from_millis(100);
        let mut connection = Connection::open(&address, None, timeout).expect("connected");
        let error = connection.request(&["PING"]).expect_err("no reply");
        assert!(error.contains("no response within --timeout"), "{error}");
        drop(connection);
        slow.join().expect("ended");
    }
}
