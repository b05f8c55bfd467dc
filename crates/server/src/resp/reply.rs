//! Encodes replies.

use super::double_text;
use crate::state::Version;

/// Appends replies to `out`. Types that RESP2 lacks are sent as its nearest type.
///
/// Arrays, maps, sets and pushes are headers: the caller appends the announced number of replies.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> Reply<'a> {
    /// Creates an encoder for this version.
    pub fn new(out: &'a mut Vec<u8>, version: Version) -> Self {
        Self { out, version }
    }

    /// Returns the version of the replies.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the length of the buffer in bytes.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Appends `OK`.
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// Appends `QUEUED`: the command waits for `EXEC`.
    pub fn queued(&mut self) {
        self.out.extend_from_slice(b"+QUEUED\r\n");
    }

    /// Appends `PONG`.
    pub fn pong(&mut self) {
        self.out.extend_from_slice(b"+PONG\r\n");
    }

    /// Appends a status.
    pub fn simple(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// Appends an error. `text` begins with its code, such as `ERR` or `WRONGTYPE`. Line ends in it
    /// become spaces, since it may quote the request.
    pub fn error(&mut self, text: &[u8]) {
        self.line(b'-', text);
    }

    /// Appends an integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    /// Appends a string.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        self.out.reserve(value.len() + 32);
        self.bulk_header(value.len());
        self.append(value);
        self.bulk_end();
    }

    /// Begins a string of `len` bytes, whose parts are added with [`append`](Self::append).
    #[inline]
    pub fn bulk_header(&mut self, len: usize) {
        self.number(b'$', len);
    }

    /// Adds a part of a string.
    #[inline]
    pub fn append(&mut self, piece: &[u8]) {
        self.out.extend_from_slice(piece);
    }

    /// Ends a string.
    #[inline]
    pub fn bulk_end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// Appends a null in place of a string.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(self.by_version(b"$-1\r\n", b"_\r\n"));
    }

    /// Appends a null in place of an array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(self.by_version(b"*-1\r\n", b"_\r\n"));
    }

    /// Begins an array of `len` replies.
    pub fn array(&mut self, len: usize) {
        self.number(b'*', len);
    }

    /// Begins a map of `len` pairs of replies; in RESP2 an array of keys and values.
    pub fn map(&mut self, len: usize) {
        match self.version {
            Version::Resp2 => self.number(b'*', len.saturating_mul(2)),
            Version::Resp3 => self.number(b'%', len),
        }
    }

    /// Begins a set of `len` replies; in RESP2 an array.
    pub fn set(&mut self, len: usize) {
        self.number(self.by_version(b'*', b'~'), len);
    }

    /// Begins a push of `len` replies; in RESP2 an array.
    pub fn push(&mut self, len: usize) {
        self.number(self.by_version(b'*', b'>'), len);
    }

    /// Appends a floating-point number; in RESP2 a string.
    pub fn double(&mut self, number: f64) {
        self.line_or_bulk(b',', double_text(number).as_bytes());
    }

    /// Appends an integer of any size, from its decimal digits; in RESP2 a string.
    pub fn big_number(&mut self, digits: &[u8]) {
        self.line_or_bulk(b'(', digits);
    }

    /// Appends a boolean; in RESP2 one or zero.
    pub fn boolean(&mut self, value: bool) {
        let bytes: &[u8] = match (self.version, value) {
            (Version::Resp2, true) => b":1\r\n",
            (Version::Resp2, false) => b":0\r\n",
            (Version::Resp3, true) => b"#t\r\n",
            (Version::Resp3, false) => b"#f\r\n",
        };
        self.out.extend_from_slice(bytes);
    }

    /// Appends text for display; in RESP2 a string.
    pub fn verbatim(&mut self, text: &[u8]) {
        match self.version {
            Version::Resp2 => self.bulk(text),
            Version::Resp3 => {
                self.number(b'=', text.len() + b"txt:".len());
                self.append(b"txt:");
                self.append(text);
                self.bulk_end();
            }
        }
    }

    fn by_version<T>(&self, resp2: T, resp3: T) -> T {
        match self.version {
            Version::Resp2 => resp2,
            Version::Resp3 => resp3,
        }
    }

    #[inline]
    fn number(&mut self, mark: u8, number: impl itoa::Integer) {
        self.out.push(mark);
        self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line_or_bulk(&mut self, mark: u8, text: &[u8]) {
        match self.version {
            Version::Resp2 => self.bulk(text),
            Version::Resp3 => self.line(mark, text),
        }
    }

    /// Appends a line. Line ends in it become spaces, since the rest would be another reply.
    fn line(&mut self, mark: u8, text: &[u8]) {
        self.out.push(mark);
        self.out.extend(text.iter().map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            other => *other,
        }));
        self.out.extend_from_slice(b"\r\n");
    }
}
