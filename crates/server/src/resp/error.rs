//! Protocol errors.

use crate::state::ValueLimit;
use std::fmt;

/// The error for bytes that are no valid request. Nothing after them can be decoded: the client
/// gets the text as an error reply, and the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The number of arguments is not a number, or exceeds the limit.
    InvalidMultibulkLength,
    /// The length of an argument is not a number, or negative.
    InvalidBulkLength,
    /// Too many arguments before login.
    UnauthenticatedMultibulkLength,
    /// The argument or the request is too long before login.
    UnauthenticatedBulkLength,
    /// The line with the number of arguments is too long.
    TooBigMultibulkCount,
    /// The line with the length of an argument is too long.
    TooBigBulkCount,
    /// An inline request is too long.
    TooBigInline,
    /// An argument exceeds the limit.
    BulkTooLong {
        /// The announced length in bytes.
        len: u64,
        /// The maximum length in bytes.
        max: u32,
        /// What sets the limit.
        limit: ValueLimit,
    },
    /// The request as a whole exceeds the limit.
    TooBigRequest,
    /// A quote in an inline request is not closed, or is followed by text.
    UnbalancedQuotes,
    /// An argument begins with this byte instead of `$`.
    ExpectedBulk(u8),
    /// An argument is not followed by CR LF, so it does not have the announced length.
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
            // The text must be one line of valid UTF-8.
            Self::ExpectedBulk(b'\r' | b'\n') => "expected '$', got ' '",
            Self::ExpectedBulk(byte) if byte == b' ' || byte.is_ascii_graphic() => {
                return write!(f, "expected '$', got '{}'", char::from(byte));
            }
            Self::ExpectedBulk(byte) => return write!(f, "expected '$', got '\\x{byte:02x}'"),
        })
    }
}

impl std::error::Error for ProtocolError {}
