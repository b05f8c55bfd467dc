//! Long values of requests that are not whole: they are received into the cache's own memory, where
//! `SET` and its like leave them, and are not gathered in a buffer of the connection.
//!
//! The connection's inbox holds the rest of the request, as if the value had no bytes; the decoder
//! knows that. One value of a request is received so, the first that is long. Where there is no
//! room for it at first, it is gathered as short ones are.

use crate::commands::Server;
use crate::connection::Connection;
use nuthatch_cache::{Draft, Error, Session, Turn};

/// Values are long from so many granules of the cache on.
const LONG_GRANULES: usize = 4;

/// How often room is made for a part of a value before it is refused: others may be faster.
const TRIES: usize = 4;

/// What a request that is not whole has besides the inbox.
#[derive(Debug, Default)]
pub(crate) enum Drafting {
    /// Nothing.
    #[default]
    None,
    /// A long value, which is gathered in the inbox.
    Refused,
    /// A long value.
    Begun(Box<Draft>),
}

/// There is no room for a value as long as it has become.
pub(crate) struct NoRoom;

impl Drafting {
    /// The draft that the next request is about.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Draft> {
        match self {
            Self::Begun(draft) => Some(draft),
            Self::None | Self::Refused => None,
        }
    }

    #[inline]
    fn unfinished(&mut self) -> Option<&mut Draft> {
        match self {
            Self::Begun(draft) if draft.missing() > 0 => Some(draft),
            _ => None,
        }
    }

    /// Takes what the value still needs of these bytes, and answers how many that were.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        session: &mut Session<'_>,
        bytes: &[u8],
    ) -> Result<usize, NoRoom> {
        match self.unfinished() {
            Some(draft) => push_all(draft, &mut session.turn(), bytes),
            None => Ok(0),
        }
    }
}

fn push_all(draft: &mut Draft, turn: &mut Turn<'_>, bytes: &[u8]) -> Result<usize, NoRoom> {
    let (mut taken, mut tries) = (0, 0);
    while taken < bytes.len() && draft.missing() > 0 {
        match draft.push(turn, &bytes[taken..]) {
            Ok(len) => (taken, tries) = (taken + len, 0),
            Err(_) if tries < TRIES && turn.renew() => tries += 1,
            Err(_) => return Err(NoRoom),
        }
    }
    Ok(taken)
}

impl Connection {
    /// Receives the value that the inbox ends in into the cache from here on, if it is a long one.
    #[inline]
    pub(crate) fn begin_draft(&mut self, session: &mut Session<'_>, server: &Server) {
        if let Some((start, len)) = self.talk.awaits()
            && len >= LONG_GRANULES * server.cache.granule_len()
            && matches!(self.draft, Drafting::None)
            && self.trusted
            && !self.waits
            && !self.closing
        {
            self.draft = Drafting::Refused;
            if server.may_draft(len) {
                self.begin_draft_of(&mut session.turn(), server, (start, len));
            }
        }
    }

    #[cold]
    fn begin_draft_of(
        &mut self,
        turn: &mut Turn<'_>,
        server: &Server,
        (start, len): (usize, usize),
    ) {
        // Its key comes before it, if there is one.
        let draft = |turn: &Turn<'_>| turn.draft(&server.cache, start, len);
        let begun = match draft(turn) {
            Err(Error::Full) if turn.renew() => draft(turn),
            other => other,
        };
        let Ok(mut draft) = begun else { return };
        let at = self.done + start;
        let Ok(taken) = push_all(&mut draft, turn, &self.inbox[at..]) else { return };
        self.inbox.drain(at..at + taken);
        self.inbox.shrink_to(0);
        self.talk.elide();
        self.draft = Drafting::Begun(Box::new(draft));
    }
}
