//! Long values that are received in place: into the cache's own memory, where `SET` and its like
//! leave them, instead of a buffer of the connection.
//!
//! While that lasts, the connection's inbox holds the rest of the request as if the value had no
//! bytes; the decoder knows that. One value of a request is received so, the first that is long.
//!
//! Memory is allocated as bytes arrive. If there is none:
//! 1. At the beginning, the value is gathered in the inbox, as short ones are. If nothing may be
//!    evicted and it exceeds the connection's share of memory, it is discarded as it arrives.
//! 2. Later, received bytes wait in the inbox while clients that do not read their replies are
//!    closed.
//! 3. If no client can be closed, the rest is discarded as it arrives, and the request gets an
//!    out-of-memory error. The connection stays open.

use nuthatch_cache::{Cache, Guard, PendingValue, Session};

/// Values are long from so many granules of the cache on.
const LONG_GRANULES: usize = 4;

/// Returns the minimum length in bytes of a value that is received in place.
pub(crate) fn min_long_len(cache: &Cache) -> usize {
    LONG_GRANULES * cache.granule_len()
}

/// Maximum attempts to free memory for a part of a value: other threads may take what was freed.
const TRIES: usize = 4;

/// What an incomplete request has besides the inbox.
#[derive(Debug, Default)]
pub(crate) enum Drafting<T> {
    /// Nothing.
    #[default]
    None,
    /// A long value, which is gathered in the inbox.
    Refused,
    /// A value that is received in place.
    Begun(Box<Begun<T>>),
}

/// A value that is received in place.
#[derive(Debug)]
pub(crate) struct Begun<T> {
    pub(crate) value: Value,
    /// The decoder as it was when it left the value out. It decodes the request again if that is
    /// executed later.
    pub(crate) talk: T,
    /// Where the inbox continues with bytes of the value, and of what follows it, that wait for
    /// memory.
    pub(crate) stalled_at: Option<usize>,
}

#[derive(Debug)]
pub(crate) enum Value {
    Kept(PendingValue),
    /// There was no memory for it, and so many bytes are still to come.
    Discarded {
        missing: usize,
    },
}

/// There is no memory for more of a value, of which so many bytes were taken.
pub(crate) struct NoRoom {
    pub(crate) taken: usize,
}

impl<T: Clone> Drafting<T> {
    /// Returns the pending value of the next request, unless it was discarded.
    #[inline]
    pub(crate) fn get(&self) -> Option<&PendingValue> {
        match self {
            Self::Begun(begun) => begun.value.kept(),
            Self::None | Self::Refused => None,
        }
    }

    /// Returns whether the value of the next request was discarded.
    #[inline]
    pub(crate) fn is_discarded(&self) -> bool {
        matches!(self, Self::Begun(begun) if begun.value.kept().is_none())
    }

    /// Returns whether bytes of the value are still to come.
    #[inline]
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self, Self::Begun(begun) if begun.is_stalled() || begun.value.missing() > 0)
    }

    /// Returns whether received bytes wait for memory.
    #[inline]
    pub(crate) fn is_stalled(&self) -> bool {
        matches!(self, Self::Begun(begun) if begun.is_stalled())
    }

    /// Returns the decoder that decodes the request of the value again.
    pub(crate) fn talk(&self) -> Option<T> {
        match self {
            Self::Begun(begun) => Some(begun.talk.clone()),
            Self::None | Self::Refused => None,
        }
    }
}

impl<T> Begun<T> {
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled_at.is_some()
    }
}

impl Value {
    fn kept(&self) -> Option<&PendingValue> {
        match self {
            Self::Kept(draft) => Some(draft),
            Self::Discarded { .. } => None,
        }
    }

    pub(crate) fn missing(&self) -> usize {
        match self {
            Self::Kept(draft) => draft.remaining(),
            Self::Discarded { missing } => *missing,
        }
    }

    /// Takes what the value still needs of `bytes`, and returns how many that were.
    pub(crate) fn take(
        &mut self,
        session: &mut Session<'_>,
        bytes: &[u8],
    ) -> Result<usize, NoRoom> {
        match self {
            Self::Kept(draft) => push_all(draft, &mut session.guard(), bytes),
            Self::Discarded { missing } => {
                let taken = bytes.len().min(*missing);
                *missing -= taken;
                Ok(taken)
            }
        }
    }
}

pub(crate) fn push_all(
    draft: &mut PendingValue,
    turn: &mut Guard<'_>,
    bytes: &[u8],
) -> Result<usize, NoRoom> {
    let (mut taken, mut tries) = (0, 0);
    while taken < bytes.len() && draft.remaining() > 0 {
        match draft.push(turn, &bytes[taken..]) {
            Ok(len) => (taken, tries) = (taken + len, 0),
            Err(_) if tries < TRIES && turn.renew() => tries += 1,
            Err(_) => return Err(NoRoom { taken }),
        }
    }
    Ok(taken)
}
