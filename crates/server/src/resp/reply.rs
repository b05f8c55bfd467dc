//! From replies to bytes.

use super::double_text;
use crate::state::Version;

/// Appends replies to `out`. What RESP2 has no word for it says with the words it has.
///
/// Arrays, maps, sets and pushes are headers: as many replies as they announce must follow.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> Reply<'a> {
    /// Replies to a client that speaks `version`.
    pub fn new(out: &'a mut Vec<u8>, version: Version) -> Self {
        Self { out, version }
    }

    /// The version these replies are in.
    pub fn version(&self) -> Version {
        self.version
    }

    /// `OK`.
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// `QUEUED`: the command waits for `EXEC`.
    pub fn queued(&mut self) {
        self.out.extend_from_slice(b"+QUEUED\r\n");
    }

    /// `PONG`.
    pub fn pong(&mut self) {
        self.out.extend_from_slice(b"+PONG\r\n");
    }

    /// A status.
    pub fn simple(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// An error; `text` begins with its code, such as `ERR` or `WRONGTYPE`. It may quote what the
    /// client sent: line ends become spaces.
    pub fn error(&mut self, text: &[u8]) {
        self.line(b'-', text);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    /// A string.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        self.out.reserve(value.len() + 32);
        self.bulk_header(value.len());
        self.append(value);
        self.bulk_end();
    }

    /// Begins a string of `len` bytes, which [`append`](Self::append) adds piece by piece.
    #[inline]
    pub fn bulk_header(&mut self, len: usize) {
        self.number(b'$', len);
    }

    /// Adds to a string that has begun.
    #[inline]
    pub fn append(&mut self, piece: &[u8]) {
        self.out.extend_from_slice(piece);
    }

    /// Ends a string that has begun.
    #[inline]
    pub fn bulk_end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// Nothing, where a string could be.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(self.by_version(b"$-1\r\n", b"_\r\n"));
    }

    /// Nothing, where an array could be.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(self.by_version(b"*-1\r\n", b"_\r\n"));
    }

    /// An array of `len` replies.
    pub fn array(&mut self, len: usize) {
        self.number(b'*', len);
    }

    /// A map of `len` pairs of replies; in RESP2 an array of all their halves.
    pub fn map(&mut self, len: usize) {
        match self.version {
            Version::Resp2 => self.number(b'*', len.saturating_mul(2)),
            Version::Resp3 => self.number(b'%', len),
        }
    }

    /// A set of `len` replies; in RESP2 an array.
    pub fn set(&mut self, len: usize) {
        self.number(self.by_version(b'*', b'~'), len);
    }

    /// `len` replies that answer no request; in RESP2 an array.
    pub fn push(&mut self, len: usize) {
        self.number(self.by_version(b'*', b'>'), len);
    }

    /// A floating-point number; in RESP2 a string.
    pub fn double(&mut self, number: f64) {
        self.line_or_bulk(b',', double_text(number).as_bytes());
    }

    /// An integer of any size, in decimal digits; in RESP2 a string.
    pub fn big_number(&mut self, digits: &[u8]) {
        self.line_or_bulk(b'(', digits);
    }

    /// True or false; in RESP2 one or zero.
    pub fn boolean(&mut self, value: bool) {
        let bytes: &[u8] = match (self.version, value) {
            (Version::Resp2, true) => b":1\r\n",
            (Version::Resp2, false) => b":0\r\n",
            (Version::Resp3, true) => b"#t\r\n",
            (Version::Resp3, false) => b"#f\r\n",
        };
        self.out.extend_from_slice(bytes);
    }

    /// Text for a person to read as it is; in RESP2 a string.
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

    /// A line must stay one, or the rest of it reads as the next reply.
    fn line(&mut self, mark: u8, text: &[u8]) {
        self.out.push(mark);
        self.out.extend(text.iter().map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            other => *other,
        }));
        self.out.extend_from_slice(b"\r\n");
    }
}
