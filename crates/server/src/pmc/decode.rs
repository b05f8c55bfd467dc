//! From bytes to requests.

use super::{SEPARATOR, Span};
use crate::state::ValueLimit;
use memchr::memchr;
use std::fmt;

/// A request. Spans are counted from the start of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks for a value.
    Get {
        /// Of this key.
        key: Span,
    },
    /// Stores a value.
    Set {
        /// Under this key.
        key: Span,
        /// All behind the space after the key; it may be empty, and hold spaces.
        value: Span,
    },
    /// Removes a value.
    Del {
        /// Of this key.
        key: Span,
    },
    /// No request, which gets an error for an answer. The connection goes on.
    Fault(Fault),
}

/// Why a message is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no space in it.
    NoSpace,
    /// There is no key, or there is no value to store.
    Incomplete,
    /// It begins with another word than `GET`, `SET` and `DEL`.
    UnknownCommand,
}

impl Fault {
    /// What the client is told.
    pub fn text(self) -> &'static str {
        match self {
            Self::NoSpace => "ERROR: Unable to parse request",
            Self::Incomplete => "ERROR: Invalid command format",
            Self::UnknownCommand => "ERROR: Unknown command",
        }
    }
}

/// What the bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A message.
    Request {
        /// What it asks for.
        request: Request,
        /// The bytes it takes up, with its separator.
        consumed: usize,
    },
    /// Separators that end no message, which get no answer.
    Empty {
        /// How many.
        consumed: usize,
    },
    /// A message in RESP: give the bytes to its decoder until that has one request.
    Resp,
    /// A part of a message, or nothing.
    More,
}

/// A message is longer than the limit. Where it ends is unknown: the client gets the text as an
/// error, and the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The limit, in bytes.
    pub max: u32,
    /// What sets the limit of the value in it.
    pub limit: ValueLimit,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max, limit } = self;
        write!(f, "Request is longer than {max} bytes ({limit})")
    }
}

impl std::error::Error for TooLong {}

/// Finds the messages in what a connection receives.
///
/// It remembers how far it has looked for the end of a message, so that one that comes in many
/// pieces is searched once.
#[derive(Clone, Debug)]
pub struct Decoder {
    message_len: u32,
    limit: ValueLimit,
    /// The message has no separator before here.
    searched: usize,
}

impl Default for Decoder {
    /// With the limit of the old server, 512 MiB.
    fn default() -> Self {
        Self::new(512 << 20)
    }
}

impl Decoder {
    /// A decoder at the start of a message, of at most `message_len` bytes without its separator.
    pub fn new(message_len: u32) -> Self {
        Self { message_len, limit: ValueLimit::Setting, searched: 0 }
    }

    /// The same decoder, whose errors name what sets the limit.
    #[must_use]
    pub fn limited_by(self, limit: ValueLimit) -> Self {
        Self { limit, ..self }
    }

    /// Reads what `bytes` begin with.
    ///
    /// After [`Step::More`] call it again with the same bytes and more behind them; after the
    /// others with what follows. After an error the decoder is of no more use.
    #[inline]
    pub fn next(&mut self, bytes: &[u8]) -> Result<Step, TooLong> {
        match bytes.first() {
            Some(&SEPARATOR) => {
                let consumed = bytes.iter().take_while(|byte| **byte == SEPARATOR).count();
                Ok(Step::Empty { consumed })
            }
            Some(b'*') => Ok(Step::Resp),
            Some(_) => self.message(bytes),
            None => Ok(Step::More),
        }
    }

    fn message(&mut self, bytes: &[u8]) -> Result<Step, TooLong> {
        let max = self.message_len as usize;
        let within = &bytes[..bytes.len().min(max.saturating_add(1))];
        let from = self.searched.min(within.len());
        if let Some(found) = memchr(SEPARATOR, &within[from..]) {
            self.searched = 0;
            let end = from + found;
            return Ok(Step::Request { request: request(&bytes[..end]), consumed: end + 1 });
        }
        if bytes.len() > max {
            return Err(TooLong { max: self.message_len, limit: self.limit });
        }
        self.searched = bytes.len();
        Ok(Step::More)
    }
}

/// What a message asks for. Its parts are checked in the order of the old server, so that a
/// message with two faults gets the answer it had there.
fn request(message: &[u8]) -> Request {
    let Some(space) = memchr(b' ', message) else {
        return Request::Fault(Fault::NoSpace);
    };
    let start = space + 1;
    let rest = &message[start..];
    if rest.is_empty() {
        return Request::Fault(Fault::Incomplete);
    }
    let second = memchr(b' ', rest);
    let key = Span::between(start, start + second.unwrap_or(rest.len()));
    match (&message[..space], second) {
        // What follows the key is no part of it, and of no use to these two.
        (b"GET", _) => Request::Get { key },
        (b"DEL", _) => Request::Del { key },
        (b"SET", None) => Request::Fault(Fault::Incomplete),
        (b"SET", Some(second)) => {
            Request::Set { key, value: Span::between(start + second + 1, message.len()) }
        }
        _ => Request::Fault(Fault::UnknownCommand),
    }
}
