//! Listeners: an address, and the protocol that clients speak there.

use crate::protocol::Protocol;
use nuthatch_listen::{Address, SocketFiles};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

/// An address for clients of one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The protocol.
    pub protocol: Protocol,
    /// The address.
    pub address: Address,
    /// Whether the protocol is inside TLS.
    pub tls: bool,
    /// Whether the server starts without this listener if the address is in use.
    pub optional: bool,
}

impl Listener {
    /// Creates a listener for clients of this protocol.
    pub fn new(protocol: Protocol, address: Address) -> Self {
        Self { protocol, address, tls: false, optional: false }
    }

    /// Lets the server start without this listener if the address is in use.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Requires TLS.
    #[must_use]
    pub fn with_tls(self) -> Self {
        Self { tls: true, ..self }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = if self.tls { "tls:" } else { "" };
        write!(f, "{tls}{} for clients of {}", self.address, self.protocol.system())
    }
}

/// The error for a listener whose address cannot be bound.
#[derive(Debug)]
pub struct ListenError {
    /// The listener.
    pub listener: Listener,
    /// The reason.
    pub error: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.listener.address, self.error)
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<ListenError> for io::Error {
    fn from(error: ListenError) -> Self {
        Self::new(error.error.kind(), error)
    }
}

/// A listening socket of one thread.
pub(crate) struct Listening {
    pub(crate) protocol: Protocol,
    pub(crate) tls: bool,
    pub(crate) socket: OwnedFd,
}

/// The sockets of all listeners.
pub(crate) struct Bound {
    /// The sockets of each thread.
    pub(crate) sockets: Vec<Vec<Listening>>,
    /// The listeners with their bound addresses.
    pub(crate) listeners: Vec<Listener>,
    /// Optional listeners whose addresses are in use.
    pub(crate) skipped: Vec<Listener>,
}

/// Listens on all addresses, except those of optional listeners that are in use. Fails if none is
/// left.
pub(crate) fn listen(
    all: &[Listener],
    threads: usize,
    files: &mut SocketFiles,
) -> Result<Bound, ListenError> {
    let mut sockets: Vec<Vec<Listening>> = (0..threads).map(|_| Vec::new()).collect();
    let (mut listeners, mut skipped) = (Vec::new(), Vec::new());
    for listener in all {
        match listen_at(listener, &mut sockets) {
            Ok(bound) => {
                files.note(&bound.address);
                listeners.push(bound);
            }
            Err(error) if listener.optional && error.kind() == io::ErrorKind::AddrInUse => {
                skipped.push((listener.clone(), error));
            }
            Err(error) => return Err(ListenError { listener: listener.clone(), error }),
        }
    }
    if listeners.is_empty()
        && let Some((listener, error)) = skipped.pop()
    {
        return Err(ListenError { listener, error });
    }
    let skipped = skipped.into_iter().map(|(listener, _)| listener).collect();
    Ok(Bound { sockets, listeners, skipped })
}

/// Listens on one address, with a socket for each thread.
fn listen_at(listener: &Listener, sockets: &mut [Vec<Listening>]) -> io::Result<Listener> {
    let Listener { protocol, tls, .. } = *listener;
    let (first, address) = listener.address.listen()?;
    for sockets in &mut sockets[1..] {
        let socket = address.listen_too(&first)?;
        sockets.push(Listening { protocol, tls, socket });
    }
    sockets[0].push(Listening { protocol, tls, socket: first });
    Ok(Listener { address, ..listener.clone() })
}
