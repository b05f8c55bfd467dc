//! Where clients connect, and what they speak there.

use crate::address::{Address, SocketFiles};
use crate::protocol::mrcache::Framing;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

/// What clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP, as clients of Redis do.
    Resp,
    /// The text and meta protocols of memcached.
    Memcache,
    /// The messages of poor-man's-cache, or RESP.
    Pmc,
    /// mrcache's, with replies that begin in one of two ways.
    Mrcache(Framing),
}

impl Protocol {
    /// How many there are.
    pub(crate) const COUNT: usize = 4;

    /// A number below [`COUNT`](Self::COUNT) for each.
    #[inline]
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Resp => 0,
            Self::Memcache => 1,
            Self::Pmc => 2,
            Self::Mrcache(_) => 3,
        }
    }

    /// The name of the system whose clients speak it.
    pub fn system(self) -> &'static str {
        match self {
            Self::Resp => "Redis",
            Self::Memcache => "memcached",
            Self::Pmc => "poor-man's-cache",
            Self::Mrcache(_) => "mrcache",
        }
    }
}

/// A place where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// What they speak.
    pub protocol: Protocol,
    /// The place.
    pub address: Address,
    /// Whether they speak it within TLS.
    pub tls: bool,
}

impl Listener {
    /// A place where clients connect that speak this protocol.
    pub fn new(protocol: Protocol, address: Address) -> Self {
        Self { protocol, address, tls: false }
    }

    /// The same, within TLS.
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

/// What one thread listens with.
pub(crate) struct Listening {
    pub(crate) protocol: Protocol,
    pub(crate) tls: bool,
    pub(crate) socket: OwnedFd,
}

/// Listens at all places: for each thread its sockets, and the places as they are bound.
pub(crate) fn listen(
    listeners: &[Listener],
    threads: usize,
    files: &mut SocketFiles,
) -> io::Result<(Vec<Vec<Listening>>, Vec<Listener>)> {
    let mut sockets: Vec<Vec<Listening>> = (0..threads).map(|_| Vec::new()).collect();
    let mut bound = Vec::new();
    for listener in listeners {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", listener.address))
        };
        let listener = listen_at(listener, &mut sockets).map_err(named)?;
        files.note(&listener.address);
        bound.push(listener);
    }
    Ok((sockets, bound))
}

/// Listens at one place with a socket for each thread.
fn listen_at(listener: &Listener, sockets: &mut [Vec<Listening>]) -> io::Result<Listener> {
    let Listener { protocol, tls, .. } = *listener;
    let (first, address) = listener.address.listen()?;
    for sockets in &mut sockets[1..] {
        let socket = address.listen_too(&first)?;
        sockets.push(Listening { protocol, tls, socket });
    }
    sockets[0].push(Listening { protocol, tls, socket: first });
    Ok(Listener { protocol, address, tls })
}
