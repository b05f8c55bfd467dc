//! Addresses to listen on, and the sockets that listen there.

mod bind_retry;
pub(crate) mod socket_file;

use crate::inherited;
use rustix::net::sockopt::{set_socket_reuseaddr, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::str::FromStr;

/// Maximum connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// An address to listen on: `host:port` or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A network address. Port 0 selects a free port.
    Tcp(SocketAddr),
    /// A socket file.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("expected a path after `unix:`, found nothing".to_owned()),
                path => Ok(Self::Unix(path.into())),
            };
        }
        let expected = format!("expected host:port or unix:PATH, found `{text}`");
        let mut found = text.to_socket_addrs().map_err(|error| format!("{expected}: {error}"))?;
        found.next().map(Self::Tcp).ok_or(expected)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Returns the port of a network address.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(address) => Some(address.port()),
            Self::Unix(_) => None,
        }
    }

    /// Returns whether only this machine can reach the address: a loopback address or a socket
    /// file.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Listens on this address, with the socket of the parent process if it has passed one. Returns
    /// the socket and the bound address, with the port that the system selected for port 0.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound, for example because another process listens there.
    pub fn listen(&self) -> io::Result<(OwnedFd, Self)> {
        match self {
            Self::Tcp(address) => {
                let socket = match inherited::tcp(*address)? {
                    Some(socket) => socket.into(),
                    None => bind_retry::listen_tcp(*address, || {
                        let socket = tcp_socket(*address)?;
                        bind(&socket, address)?;
                        listen(&socket, BACKLOG)?;
                        Ok(socket)
                    })?,
                };
                // Set only now: otherwise a second server could listen on the address, and each
                // would get some of the connections.
                set_socket_reuseport(&socket, true)?;
                let bound = rustix::net::getsockname(&socket)?;
                let bound = SocketAddr::try_from(bound).map_err(io::Error::from)?;
                Ok((socket, Self::Tcp(bound)))
            }
            Self::Unix(path) => Ok((socket_file::listen(path)?, self.clone())),
        }
    }

    /// Returns another socket that listens on the address of `first`. The kernel distributes
    /// connections among them.
    ///
    /// # Errors
    ///
    /// Fails with the error of the system.
    pub fn listen_too(&self, first: &OwnedFd) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(address) => {
                let socket = tcp_socket(*address)?;
                set_socket_reuseport(&socket, true)?;
                bind(&socket, address)?;
                listen(&socket, BACKLOG)?;
                Ok(socket)
            }
            // Threads share one socket: the first one to accept gets the connection.
            Self::Unix(_) => first.try_clone(),
        }
    }
}

/// Socket files, removed when this is dropped. A file that is left behind blocks its path.
#[derive(Debug, Default)]
pub struct SocketFiles(Vec<PathBuf>);

impl SocketFiles {
    /// Adds the file of an address, if it has one that the parent process has not created.
    pub fn note(&mut self, address: &Address) {
        if let Address::Unix(path) = address
            && !inherited::has_file(path)
        {
            self.0.push(path.clone());
        }
    }

    /// Removes the files.
    pub fn remove(&mut self) {
        for path in self.0.drain(..) {
            // The file may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        self.remove();
    }
}

fn tcp_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["127.0.0.1:6379", "[::1]:6379", "unix:/run/nuthatch.sock"] {
            assert_eq!(text.parse::<Address>().expect("an address").to_string(), text);
        }
        for text in ["", "6379", "127.0.0.1", "unix:", "127.0.0.1:99999"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn loopback_and_files_are_local() {
        let local = |text: &str| text.parse::<Address>().expect("an address").is_local();
        assert!(local("127.0.0.1:1") && local("[::1]:1") && local("unix:x"));
        assert!(!local("0.0.0.0:1") && !local("[::]:1") && !local("10.0.0.1:1"));
    }

    #[test]
    fn two_sockets_listen_on_one_address() {
        let any: Address = "127.0.0.1:0".parse().expect("an address");
        let (first, bound) = any.listen().expect("a free port");
        assert_ne!(bound, any);
        let second = bound.listen_too(&first).expect("the same port");
        let name = rustix::net::getsockname(&second).expect("a name");
        assert_eq!(Address::Tcp(name.try_into().expect("an address")), bound);
    }

    #[test]
    fn each_of_two_sockets_gets_connections() {
        let any: Address = "127.0.0.1:0".parse().expect("an address");
        let (first, bound) = any.listen().expect("a free port");
        let second = bound.listen_too(&first).expect("the same port");
        let sockets = [first, second].map(std::net::TcpListener::from);
        let Address::Tcp(address) = bound else { panic!("an address of the network") };
        // The kernel distributes connections randomly: one run in 2^63 gives all to one socket.
        let clients: Vec<_> = (0..64).map(|_| std::net::TcpStream::connect(address)).collect();
        assert!(clients.iter().all(Result::is_ok));
        for socket in sockets {
            socket.set_nonblocking(true).expect("a socket");
            assert!(socket.accept().is_ok());
        }
    }

    #[test]
    fn a_port_on_which_another_server_listens_is_refused() {
        let any: Address = "127.0.0.1:0".parse().expect("an address");
        let (first, bound) = any.listen().expect("a free port");
        let _second = bound.listen_too(&first).expect("the same port");
        let error = bound.listen().expect_err("a port that is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
