//! Replies to text commands, and elements that both protocols share.

use super::Error;

/// The end of a line and of a data block.
pub const LINE_END: &[u8] = b"\r\n";

/// A constant reply of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The end of values or statistics.
    End,
    /// The value is stored.
    Stored,
    /// The value is not stored: the key exists or is missing, contrary to the mode.
    NotStored,
    /// The value is not stored: another client changed the item.
    Exists,
    /// The key is missing.
    NotFound,
    /// The key is removed.
    Deleted,
    /// The key has its new expiry.
    Touched,
    /// Done.
    Ok,
    /// The statistics are reset.
    Reset,
    /// The reply to `mn`: all requests before it are answered.
    Noop,
}

impl Line {
    /// Returns the line with its end.
    #[inline]
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::End => b"END\r\n",
            Self::Stored => b"STORED\r\n",
            Self::NotStored => b"NOT_STORED\r\n",
            Self::Exists => b"EXISTS\r\n",
            Self::NotFound => b"NOT_FOUND\r\n",
            Self::Deleted => b"DELETED\r\n",
            Self::Touched => b"TOUCHED\r\n",
            Self::Ok => b"OK\r\n",
            Self::Reset => b"RESET\r\n",
            Self::Noop => b"MN\r\n",
        }
    }
}

/// Writes a line.
#[inline]
pub fn line(out: &mut Vec<u8>, line: Line) {
    out.extend_from_slice(line.bytes());
}

/// Writes an error.
pub fn error(out: &mut Vec<u8>, error: Error) {
    out.extend_from_slice(error.text().as_bytes());
    out.extend_from_slice(LINE_END);
}

/// Writes an error that is about the request.
pub fn client_error(out: &mut Vec<u8>, why: &str) {
    out.extend_from_slice(b"CLIENT_ERROR ");
    out.extend_from_slice(why.as_bytes());
    out.extend_from_slice(LINE_END);
}

/// Writes an error after which the connection is closed.
pub fn server_error(out: &mut Vec<u8>, why: &str) {
    out.extend_from_slice(b"SERVER_ERROR ");
    out.extend(why.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
    out.extend_from_slice(LINE_END);
}

/// Writes the line before a value of `len` bytes, with its CAS number for `gets` and `gats`. The
/// caller appends the value and [`LINE_END`].
#[inline]
pub fn value_header(out: &mut Vec<u8>, key: &[u8], flags: u32, len: usize, cas: Option<u64>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    number_after(out, b' ', u64::from(flags));
    number_after(out, b' ', len as u64);
    if let Some(cas) = cas {
        number_after(out, b' ', cas);
    }
    out.extend_from_slice(LINE_END);
}

/// Writes a value with its header line.
#[inline]
pub fn value(out: &mut Vec<u8>, key: &[u8], flags: u32, value: &[u8], cas: Option<u64>) {
    value_header(out, key, flags, value.len(), cas);
    out.extend_from_slice(value);
    out.extend_from_slice(LINE_END);
}

/// Writes the result of `incr` or `decr`.
pub fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(LINE_END);
}

/// Writes the version of the server.
pub fn version(out: &mut Vec<u8>, version: &str) {
    out.extend_from_slice(b"VERSION ");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(LINE_END);
}

/// Writes one statistic. [`Line::End`] follows the last one.
pub fn stat(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b"STAT ");
    out.extend_from_slice(name.as_bytes());
    out.push(b' ');
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(LINE_END);
}

#[inline]
pub(crate) fn number_after(out: &mut Vec<u8>, before: u8, number: u64) {
    out.push(before);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
