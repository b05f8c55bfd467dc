//! The sockets of the admin endpoint.

use crate::accept;
use crate::address::{Address, SocketFiles, socket_file};
use std::fmt;
use std::io;

/// The error for an admin address that cannot be bound.
#[derive(Debug)]
pub struct BindError {
    address: Address,
    error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the admin address {}: {}", self.address, self.error)
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// Listening sockets and their bound addresses.
#[derive(Debug, Default)]
pub struct Listeners {
    pub(super) all: Vec<Listener>,
    pub(super) addresses: Vec<Address>,
    pub(super) files: SocketFiles,
}

impl Listeners {
    /// Binds all addresses. None is shared with another process, since clients would reach either
    /// of the two.
    ///
    /// # Errors
    ///
    /// Fails with a [`BindError`] if an address cannot be bound.
    pub fn bind(addresses: &[Address]) -> io::Result<Self> {
        let mut listeners = Self::default();
        for address in addresses {
            let (listener, bound) = listen(address).map_err(|error| {
                let kind = error.kind();
                io::Error::new(kind, BindError { address: address.clone(), error })
            })?;
            listeners.files.note(&bound);
            listeners.all.push(listener);
            listeners.addresses.push(bound);
        }
        Ok(listeners)
    }

    /// Returns the bound addresses, with the ports that the system selected for port 0.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }
}

fn listen(address: &Address) -> io::Result<(Listener, Address)> {
    match address {
        Address::Tcp(address) => {
            let (listener, bound) = accept::bind(*address)?;
            Ok((Listener::Tcp(listener), Address::Tcp(bound)))
        }
        Address::Unix(path) => {
            let listener = std::os::unix::net::UnixListener::from(socket_file::listen(path)?);
            listener.set_nonblocking(true)?;
            Ok((Listener::Unix(listener), address.clone()))
        }
    }
}
