//! Which protocol clients speak.

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

/// What a reply starts with. A request does not tell which of the two its client reads, so a
/// listener speaks one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// The length of the value, in four bytes.
    #[default]
    Len4,
    /// 0, 1 and the length, in six bytes: what clients of 2020 read.
    Ver6,
}
