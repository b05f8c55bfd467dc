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

use super::connection::{Connection, append};
use super::decoder::Talk;
use crate::state::Server;
use nuthatch_cache::{Cache, Error, Guard, PendingValue, Session};

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
pub(crate) enum Drafting {
    /// Nothing.
    #[default]
    None,
    /// A long value, which is gathered in the inbox.
    Refused,
    /// A value that is received in place.
    Begun(Box<Begun>),
}

/// A value that is received in place.
#[derive(Debug)]
pub(crate) struct Begun {
    value: Value,
    /// The decoder as it was when it left the value out. It decodes the request again if that is
    /// executed later.
    talk: Talk,
    /// Where the inbox continues with bytes of the value, and of what follows it, that wait for
    /// memory.
    stalled_at: Option<usize>,
}

#[derive(Debug)]
enum Value {
    Kept(PendingValue),
    /// There was no memory for it, and so many bytes are still to come.
    Discarded {
        missing: usize,
    },
}

/// There is no memory for more of a value, of which so many bytes were taken.
struct NoRoom {
    taken: usize,
}

impl Drafting {
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
    pub(crate) fn talk(&self) -> Option<Talk> {
        match self {
            Self::Begun(begun) => Some(begun.talk.clone()),
            Self::None | Self::Refused => None,
        }
    }
}

impl Begun {
    fn is_stalled(&self) -> bool {
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

    fn missing(&self) -> usize {
        match self {
            Self::Kept(draft) => draft.remaining(),
            Self::Discarded { missing } => *missing,
        }
    }

    /// Takes what the value still needs of `bytes`, and returns how many that were.
    fn take(&mut self, session: &mut Session<'_>, bytes: &[u8]) -> Result<usize, NoRoom> {
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

fn push_all(draft: &mut PendingValue, turn: &mut Guard<'_>, bytes: &[u8]) -> Result<usize, NoRoom> {
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

impl Connection {
    /// Appends `bytes` to the value that is received in place, and returns how many were consumed.
    /// Without memory, the remaining ones wait in the inbox (see [`Drafting::is_stalled`]), or the
    /// value is discarded.
    #[inline]
    pub(crate) fn receive_value(
        &mut self,
        session: &mut Session<'_>,
        server: &Server,
        bytes: &[u8],
    ) -> usize {
        if self.draft.is_unfinished() { self.continue_value(session, server, bytes) } else { 0 }
    }

    fn continue_value(
        &mut self,
        session: &mut Session<'_>,
        server: &Server,
        bytes: &[u8],
    ) -> usize {
        let Drafting::Begun(begun) = &mut self.draft else { return 0 };
        if begun.is_stalled() {
            append(&mut self.inbox, bytes);
            return bytes.len();
        }
        let NoRoom { taken } = match begun.value.take(session, bytes) {
            Ok(taken) => return taken,
            Err(no_room) => no_room,
        };
        if self.stall_or_discard(server, self.inbox.len()) {
            append(&mut self.inbox, &bytes[taken..]);
            return bytes.len();
        }
        taken + self.continue_value(session, server, &bytes[taken..])
    }

    /// Appends bytes that wait for memory to their value. If there is still none and no client can
    /// be closed, discards the value.
    pub(crate) fn resume_value(&mut self, session: &mut Session<'_>, server: &Server) {
        let Drafting::Begun(begun) = &mut self.draft else { return };
        let Some(at) = begun.stalled_at.take() else { return };
        let (taken, is_short) = match begun.value.take(session, &self.inbox[at..]) {
            Ok(taken) => (taken, false),
            Err(NoRoom { taken }) => (taken, true),
        };
        self.inbox.drain(at..at + taken);
        if !is_short {
            self.note_executed();
        } else if !self.stall_or_discard(server, at) {
            let Drafting::Begun(begun) = &mut self.draft else { return };
            let taken = begun.value.take(session, &self.inbox[at..]).unwrap_or(0);
            self.inbox.drain(at..at + taken);
        }
    }

    /// Makes the value wait for memory, with its next bytes at this place of the inbox, or discards
    /// it. Returns whether it waits.
    #[cold]
    fn stall_or_discard(&mut self, server: &Server, at: usize) -> bool {
        let waits = self.may_wait_for_memory(server);
        let Drafting::Begun(begun) = &mut self.draft else { return false };
        if waits {
            begun.stalled_at = Some(at);
            self.waits = true;
        } else {
            begun.value = Value::Discarded { missing: begun.value.missing() };
        }
        waits
    }

    /// Discards the incomplete value of the next request, although the bytes that arrived were
    /// gathered in the inbox. Returns false and discards nothing if no value is incomplete, if the
    /// client has not logged in, or if the other bytes of its requests exceed `limit`.
    pub(crate) fn discard_value(&mut self, limit: usize) -> bool {
        let Some((start, len)) = self.talk.awaits().filter(|_| self.trusted) else { return false };
        let at = self.done + start;
        let taken = len.min(self.inbox.len().saturating_sub(at));
        if self.inbox.len() - self.done - taken + self.client.queued_len() > limit {
            return false;
        }
        self.inbox.drain(at..at + taken);
        self.inbox.shrink_to(0);
        self.begin_value(Value::Discarded { missing: len - taken });
        true
    }

    /// Begins to receive the incomplete value at the end of the inbox in place, if it is long.
    #[inline]
    pub(crate) fn begin_draft(&mut self, session: &mut Session<'_>, server: &Server) {
        if let Some((start, len)) = self.talk.awaits()
            && len >= min_long_len(&server.cache)
            && matches!(self.draft, Drafting::None)
            && self.trusted
            && !self.waits
            && !self.closing
        {
            self.draft = Drafting::Refused;
            if server.may_draft(len) {
                self.begin_draft_of(&mut session.guard(), server, (start, len));
            }
        }
    }

    #[cold]
    fn begin_draft_of(
        &mut self,
        turn: &mut Guard<'_>,
        server: &Server,
        (start, len): (usize, usize),
    ) {
        // Its key comes before it, if there is one.
        let draft = |turn: &Guard<'_>| turn.begin_value(&server.cache, start, len);
        let begun = match draft(turn) {
            Err(Error::Full) if turn.renew() => draft(turn),
            other => other,
        };
        let Ok(mut draft) = begun else { return };
        let at = self.done + start;
        let Ok(taken) = push_all(&mut draft, turn, &self.inbox[at..]) else { return };
        self.inbox.drain(at..at + taken);
        self.inbox.shrink_to(0);
        self.begin_value(Value::Kept(draft));
    }

    /// The value that the next request is waiting for is not in the inbox from here on.
    fn begin_value(&mut self, value: Value) {
        self.talk.elide();
        let talk = self.talk.clone();
        self.draft = Drafting::Begun(Box::new(Begun { value, talk, stalled_at: None }));
    }
}
