//! What a client can break.

use crate::state::ValueLimit;
use std::fmt;

/// Bytes that are no request. Nothing after them can be understood: the client gets the text as
/// an error reply, and the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The number of arguments is no number, or over the limit.
    InvalidMultibulkLength,
    /// The length of an argument is no number, or negative.
    InvalidBulkLength,
    /// Too many arguments for a client that has not authenticated.
    UnauthenticatedMultibulkLength,
    /// Too long an argument, or too long a request, for a client that has not authenticated.
    UnauthenticatedBulkLength,
    /// The line with the number of arguments does not end.
    TooBigMultibulkCount,
    /// The line with the length of an argument does not end.
    TooBigBulkCount,
    /// The line of an inline request does not end.
    TooBigInline,
    /// An argument is longer than the limit.
    BulkTooLong {
        /// Its length.
        len: u64,
        /// The limit.
        max: u32,
        /// What sets the limit.
        limit: ValueLimit,
    },
    /// The request would be longer than the limit.
    TooBigRequest,
    /// A quote in an inline request is not closed, or text follows the closing one.
    UnbalancedQuotes,
    /// An argument does not begin with `$` but with this byte.
    ExpectedBulk(u8),
    /// The bytes behind an argument are not CR LF: it is not as long as announced.
    ExpectedLineEnd,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ERR Protocol error: ")?;
        f.write_str(match *self {
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::InvalidBulkLength => "invalid bulk length",
            Self::BulkTooLong { len, max, limit } => {
                let text = "invalid bulk length";
                return write!(f, "{text}: {len} bytes exceed the limit of {max} ({limit})");
            }
            Self::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            Self::UnauthenticatedBulkLength => "unauthenticated bulk length",
            Self::TooBigMultibulkCount => "too big mbulk count string",
            Self::TooBigBulkCount => "too big bulk count string",
            Self::TooBigInline => "too big inline request",
            Self::TooBigRequest => "too big request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::ExpectedLineEnd => "expected CRLF after an argument",
            // The text is one line, and valid UTF-8 for clients that insist on it.
            Self::ExpectedBulk(b'\r' | b'\n') => "expected '$', got ' '",
            Self::ExpectedBulk(byte) if byte == b' ' || byte.is_ascii_graphic() => {
                return write!(f, "expected '$', got '{}'", char::from(byte));
            }
            Self::ExpectedBulk(byte) => return write!(f, "expected '$', got '\\x{byte:02x}'"),
        })
    }
}

impl std::error::Error for ProtocolError {}
