//! A connection to a node.

use super::reply::Reply;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// Bytes in both directions.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A connection to a node.
pub(super) struct Connection {
    address: String,
    stream: BufReader<Box<dyn Stream>>,
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
        let stream = connect(address, timeout).map_err(failed)?;
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
        Ok(Self { address: address.to_owned(), stream: BufReader::new(stream) })
    }

    /// Sends a request, and returns its reply.
    pub(super) fn request(&mut self, words: &[&str]) -> Result<Reply, String> {
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            // Writing to a string cannot fail.
            let _ = write!(bytes, "${}\r\n{word}\r\n", word.len());
        }
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

fn connect(address: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, timeout) {
            Ok(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
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
