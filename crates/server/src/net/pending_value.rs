//! Long values that are received in place: directly into the memory of the cache, where `SET` and
//! similar commands need no copy of them, instead of into a buffer of the connection.
//!
//! The inbox holds the other bytes of the request, and the decoder treats the request as if its
//! value were empty. At most one value of a request, the first long one, is received in place.
//!
//! Memory is charged as bytes arrive. If there is none:
//! 1. At the beginning of the value: the value is gathered in the inbox, like short ones. If
//!    nothing
//!    may be evicted and the value exceeds the connection's share of memory, it is discarded as it
//!    arrives.
//! 2. Later: received bytes wait in the inbox while the server closes clients that do not read
//!    their replies.
//! 3. Later, if no client can be closed: the rest of the value is discarded as it arrives, and the
//!    request gets an out-of-memory error. The connection stays open.

use nuthatch_cache::{Cache, Guard, PendingValue, Session};

/// Minimum length of a value that is received in place, in granules of the cache.
const MIN_IN_PLACE_GRANULES: usize = 4;

/// Returns the minimum length in bytes of a value that is received in place.
pub(crate) fn min_in_place_len(cache: &Cache) -> usize {
    MIN_IN_PLACE_GRANULES * cache.granule_len()
}

/// Maximum attempts to free memory for a part of a value: other threads may take what was freed.
const MAX_TRIES: usize = 4;

/// The value of an incomplete request that is not in the inbox.
#[derive(Debug, Default)]
pub(crate) enum InPlace<T> {
    /// There is none.
    #[default]
    None,
    /// A long value is gathered in the inbox.
    Gathered,
    /// A value is received in place.
    Receiving(Box<Receiving<T>>),
}

/// A value that is received in place.
#[derive(Debug)]
pub(crate) struct Receiving<T> {
    pub(crate) value: Value,
    /// A copy of the decoder from the moment at which it left out the value. It decodes the request
    /// again if the request is executed later.
    pub(crate) decoder: T,
    /// The offset in the inbox from which bytes of the value, and bytes after it, wait for memory.
    pub(crate) stalled_at: Option<usize>,
}

#[derive(Debug)]
pub(crate) enum Value {
    Pending(PendingValue),
    /// There was no memory for the value. This many bytes are still missing.
    Discarded {
        missing: usize,
    },
}

/// There is no memory for more of a value. This many bytes were consumed.
pub(crate) struct NoMemory {
    pub(crate) taken: usize,
}

impl<T: Clone> InPlace<T> {
    /// Returns the pending value of the next request, unless it was discarded.
    #[inline]
    pub(crate) fn get(&self) -> Option<&PendingValue> {
        match self {
            Self::Receiving(receiving) => receiving.value.pending(),
            Self::None | Self::Gathered => None,
        }
    }

    /// Returns whether the value of the next request was discarded.
    #[inline]
    pub(crate) fn is_discarded(&self) -> bool {
        matches!(self, Self::Receiving(receiving) if receiving.value.pending().is_none())
    }

    /// Returns whether bytes of the value are still to come.
    #[inline]
    pub(crate) fn is_unfinished(&self) -> bool {
        match self {
            Self::Receiving(value) => value.is_stalled() || value.value.missing() > 0,
            Self::None | Self::Gathered => false,
        }
    }

    /// Returns whether received bytes wait for memory.
    #[inline]
    pub(crate) fn is_stalled(&self) -> bool {
        matches!(self, Self::Receiving(receiving) if receiving.is_stalled())
    }

    /// Returns the decoder that decodes the request of the value again.
    pub(crate) fn decoder(&self) -> Option<T> {
        match self {
            Self::Receiving(receiving) => Some(receiving.decoder.clone()),
            Self::None | Self::Gathered => None,
        }
    }
}

impl<T> Receiving<T> {
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled_at.is_some()
    }
}

impl Value {
    fn pending(&self) -> Option<&PendingValue> {
        match self {
            Self::Pending(pending) => Some(pending),
            Self::Discarded { .. } => None,
        }
    }

    pub(crate) fn missing(&self) -> usize {
        match self {
            Self::Pending(pending) => pending.remaining(),
            Self::Discarded { missing } => *missing,
        }
    }

    /// Consumes the missing bytes of the value from `bytes`, and returns how many these were.
    pub(crate) fn take(
        &mut self,
        session: &mut Session<'_>,
        bytes: &[u8],
    ) -> Result<usize, NoMemory> {
        match self {
            Self::Pending(pending) => push_all(pending, &mut session.guard(), bytes),
            Self::Discarded { missing } => {
                let taken = bytes.len().min(*missing);
                *missing -= taken;
                Ok(taken)
            }
        }
    }
}

pub(crate) fn push_all(
    pending: &mut PendingValue,
    guard: &mut Guard<'_>,
    bytes: &[u8],
) -> Result<usize, NoMemory> {
    let (mut taken, mut tries) = (0, 0);
    while taken < bytes.len() && pending.remaining() > 0 {
        match pending.push(guard, &bytes[taken..]) {
            Ok(len) => (taken, tries) = (taken + len, 0),
            Err(_) if tries < MAX_TRIES && guard.renew() => tries += 1,
            Err(_) => return Err(NoMemory { taken }),
        }
    }
    Ok(taken)
}
