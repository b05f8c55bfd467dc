//! Addresses of servers.

use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host and a port, separated by a colon.
    Tcp(String),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err("expected a path after unix:".into())
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        port.map(|_| Self::Tcp(text.into())).ok_or_else(|| "expected HOST:PORT or unix:PATH".into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Connects to the server.
    pub(crate) fn connect(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Ok(stream.into())
            }
            Self::Unix(path) => Ok(UnixStream::connect(path)?.into()),
        }
    }

    /// Listens on this address. Returns the socket and its actual address, in which the system's
    /// choice replaces port 0.
    pub(crate) fn listen(&self) -> io::Result<(OwnedFd, Self)> {
        match self {
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                let bound = Self::Tcp(listener.local_addr()?.to_string());
                Ok((listener.into(), bound))
            }
            Self::Unix(path) => Ok((UnixListener::bind(path)?.into(), self.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in ["127.0.0.1:6379", "[::1]:1", "cache.example:7000", "unix:/run/cache.sock"] {
            assert_eq!(text.parse::<Address>().map(|a| a.to_string()), Ok(text.into()));
        }
        for text in ["", "localhost", "localhost:", "localhost:http", "1:65536", "unix:"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
