//! Decodes received bytes into requests.

use super::{SEPARATOR, Span};
use crate::state::ValueLimit;
use memchr::memchr;
use std::fmt;

/// A request. Spans are relative to the start of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Gets a value.
    Get {
        /// The key.
        key: Span,
    },
    /// Stores a value.
    Set {
        /// The key.
        key: Span,
        /// All bytes after the space that ends the key. It may be empty and may contain spaces.
        value: Span,
    },
    /// Removes a value.
    Del {
        /// The key.
        key: Span,
    },
    /// An invalid message. It gets an error, and the connection continues.
    Fault(Fault),
}

/// Why a message is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no space.
    NoSpace,
    /// It has no key, or `SET` has no value.
    Incomplete,
    /// Its first word is not `GET`, `SET` or `DEL`.
    UnknownCommand,
}

impl Fault {
    /// Returns the text of the error.
    pub fn text(self) -> &'static str {
        match self {
            Self::NoSpace => "ERROR: Unable to parse request",
            Self::Incomplete => "ERROR: Invalid command format",
            Self::UnknownCommand => "ERROR: Unknown command",
        }
    }
}

/// What the next bytes contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A message.
    Request {
        /// The request.
        request: Request,
        /// The number of bytes, with the separator.
        consumed: usize,
    },
    /// Separators without a message before them, which get no reply.
    Empty {
        /// The number of bytes.
        consumed: usize,
    },
    /// A RESP message. The caller passes the bytes to the RESP decoder until that returns one
    /// request.
    Resp,
    /// An incomplete message, or nothing.
    More,
}

/// The error for a message that exceeds the limit. The end of the message is unknown: the client
/// gets the text of this error, and the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The limit, in bytes.
    pub max: u32,
    /// What sets the limit.
    pub limit: ValueLimit,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max, limit } = self;
        write!(f, "Request is longer than {max} bytes ({limit})")
    }
}

impl std::error::Error for TooLong {}

/// Finds messages in received bytes.
///
/// It remembers how far it has searched for the end of a message, so that a message in many pieces
/// is searched once.
#[derive(Clone, Debug)]
pub struct Decoder {
    message_len: u32,
    limit: ValueLimit,
    /// The number of bytes of the message without a separator.
    searched: usize,
}

impl Default for Decoder {
    /// Returns a decoder with the limit of the original server, 512 MiB.
    fn default() -> Self {
        Self::new(512 << 20)
    }
}

impl Decoder {
    /// Creates a decoder for messages of at most `message_len` bytes without separator.
    pub fn new(message_len: u32) -> Self {
        Self { message_len, limit: ValueLimit::Setting, searched: 0 }
    }

    /// Sets what limits the length of messages, for the text of errors.
    #[must_use]
    pub fn limited_by(self, limit: ValueLimit) -> Self {
        Self { limit, ..self }
    }

    /// Decodes the next step.
    ///
    /// After [`Step::More`] the caller passes the same bytes with more after them, otherwise the
    /// bytes that follow.
    ///
    /// # Errors
    ///
    /// [`TooLong`] if the message is longer than allowed. The decoder is unusable after it.
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

/// Parses a message. Its parts are checked in the order of the original server, so that a message
/// with two errors gets the same reply.
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
        // Both commands ignore the bytes after the key.
        (b"GET", _) => Request::Get { key },
        (b"DEL", _) => Request::Del { key },
        (b"SET", None) => Request::Fault(Fault::Incomplete),
        (b"SET", Some(second)) => {
            Request::Set { key, value: Span::between(start + second + 1, message.len()) }
        }
        _ => Request::Fault(Fault::UnknownCommand),
    }
}
