//! Decodes received bytes into requests.

use super::layout::{KEY_LEN, OP, Op, VALUE_LEN};
use super::request::{Error, Request};

/// Limits of what a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of a key, up to 65,535.
    pub key_len: usize,
    /// Maximum bytes of a value, below 2 GiB.
    pub value_len: usize,
}

impl Default for Limits {
    /// Returns the limits of mrcache.
    fn default() -> Self {
        Self { key_len: 65_535, value_len: (16 << 20) - 1 }
    }
}

impl Limits {
    /// Returns these limits, with keys and values of at most this many bytes.
    #[must_use]
    pub fn at_most(self, len: usize) -> Self {
        Self { key_len: self.key_len.min(len), value_len: self.value_len.min(len) }
    }
}

/// What the next bytes contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'b> {
    /// A request.
    Request {
        /// The request.
        request: Request<'b>,
        /// The number of bytes that it takes.
        consumed: usize,
    },
    /// No valid request. The connection must be closed after all replies.
    Error {
        /// The reason.
        error: Error,
    },
    /// An incomplete request.
    More {
        /// The minimum number of missing bytes.
        needed: usize,
    },
}

/// Finds requests in received bytes. Lengths come first, so it keeps no state of an incomplete
/// request.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    limits: Limits,
}

impl Decoder {
    /// Creates a decoder for a connection.
    pub fn new(limits: Limits) -> Self {
        let value_len = limits.value_len.min(i32::MAX as usize);
        Self { limits: Limits { value_len, ..limits } }
    }

    /// Decodes the next step. `bytes` are all received bytes that are not consumed.
    #[inline]
    pub fn next<'b>(&self, bytes: &'b [u8]) -> Step<'b> {
        let more = |len: usize| Step::More { needed: len - bytes.len() };
        let Some(&byte) = bytes.get(OP) else { return more(OP + 1) };
        let Some(op) = Op::from_byte(byte) else {
            return Step::Error { error: Error::UnknownOp { found: byte } };
        };
        let start = op.header_len();
        let Some((header, rest)) = bytes.split_at_checked(start) else {
            return more(start);
        };
        let (key_len, value_len) = match self.lengths(op, header) {
            Ok(lengths) => lengths,
            Err(error) => return Step::Error { error },
        };
        let consumed = start + key_len + value_len;
        let Some(data) = rest.get(..key_len + value_len) else {
            return more(consumed);
        };
        let (key, value) = data.split_at(key_len);
        let request = match op {
            Op::Get => Request::Get { key },
            Op::Set => Request::Set { key, value },
            Op::GetZ => Request::GetZ { key },
            Op::SetZ => Request::SetZ { key, value },
            Op::Stat => Request::Stat,
        };
        Step::Request { request, consumed }
    }

    /// Returns the lengths of key and value, 0 for a missing one.
    #[inline]
    fn lengths(&self, op: Op, header: &[u8]) -> Result<(usize, usize), Error> {
        let field = |at: usize| header.get(at..).unwrap_or_default();
        let key_len = field(KEY_LEN).first_chunk().map_or(0, |len| u16::from_le_bytes(*len));
        let value_len = field(VALUE_LEN).first_chunk().map_or(0, |len| u32::from_le_bytes(*len));
        let (key_len, value_len) = (usize::from(key_len), value_len as usize);
        let Limits { key_len: max_key_len, value_len: max_value_len } = self.limits;
        if key_len > max_key_len {
            return Err(Error::KeyTooLong { op, found: key_len, max: max_key_len });
        }
        if value_len > max_value_len {
            return Err(Error::ValueTooLong { op, found: value_len, max: max_value_len });
        }
        Ok((key_len, value_len))
    }
}
