//! The protocols of clients.

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP, for clients of Redis.
    Resp,
    /// The text and meta protocols of memcached.
    Memcache,
    /// The messages of poor-man's-cache, or RESP.
    Pmc,
    /// The binary protocol of mrcache, with one of two reply formats.
    Mrcache(Framing),
}

impl Protocol {
    /// The number of protocols.
    pub(crate) const COUNT: usize = 4;

    /// Returns a number below [`COUNT`](Self::COUNT) for each protocol.
    #[inline]
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Resp => 0,
            Self::Memcache => 1,
            Self::Pmc => 2,
            Self::Mrcache(_) => 3,
        }
    }

    /// Returns the name of the system whose clients speak the protocol.
    pub fn system(self) -> &'static str {
        match self {
            Self::Resp => "Redis",
            Self::Memcache => "memcached",
            Self::Pmc => "poor-man's-cache",
            Self::Mrcache(_) => "mrcache",
        }
    }
}

/// The header of mrcache replies. A request does not show which header its client expects, so it is
/// a setting of the listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// The length of the value, in four bytes.
    #[default]
    Len4,
    /// The bytes 0 and 1, then the length in four bytes: for clients written in 2020.
    Ver6,
}
