//! Decodes received bytes into requests.

use super::inline;
use super::number::short;
use super::{Limits, ProtocolError, Span, Step};
use crate::number::integer;
use memchr::memchr;

/// Maximum capacity for spans that is kept between requests.
const KEPT_SPANS: usize = 1024;

/// Finds requests in received bytes.
///
/// It remembers its progress in an incomplete request, so that a request in many pieces is read
/// once. Memory grows with the bytes that have arrived, never with an announced length.
#[derive(Clone, Debug)]
pub struct Decoder {
    limits: Limits,
    /// The limits for this client, from `limits`.
    max_args: u32,
    max_bulk_len: u32,
    /// The number of bytes at the start of the incomplete request that are decoded.
    done: usize,
    /// The number of arguments that are not decoded yet.
    left: u32,
    /// The spans of the arguments that are decoded.
    held: Vec<Span>,
    /// The number of bytes of the request that were searched for the end of the next line, without
    /// success. 0 unless the request is incomplete.
    searched: usize,
    /// Offset and length of the argument that is incomplete; length 0 if there is none.
    pending: (usize, u32),
    /// Offset of the line that announces the elided argument, and the length of that argument;
    /// length 0 if there is none. Valid only while the request is incomplete.
    elided: (usize, u32),
}

impl Decoder {
    /// Creates a decoder at the start of a request.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            max_args: limits.max_args(),
            max_bulk_len: limits.max_bulk_len(),
            done: 0,
            left: 0,
            held: Vec::new(),
            searched: 0,
            pending: (0, 0),
            elided: (0, 0),
        }
    }

    /// Returns the offset and length of the value that an incomplete request is still waiting for,
    /// after [`Step::More`].
    pub fn pending_value(&self) -> Option<(usize, usize)> {
        let (start, len) = self.pending;
        let is_pending = len > 0 && self.done > 0 && self.elided.1 == 0;
        is_pending.then_some((start, len as usize))
    }

    /// Skips the [pending value](Self::pending_value), which the caller receives elsewhere: from
    /// here on, the caller passes the request without the bytes of that value to
    /// [`next`](Self::next), and the span of the argument is outside the request. At most one
    /// argument of a request can be elided.
    pub fn elide(&mut self) {
        if let Some((_, len)) = self.pending_value() {
            self.elided = (self.done, len as u32);
        }
    }

    /// Returns the bytes of memory that the decoder keeps for an incomplete request, in addition to
    /// the request.
    #[inline]
    pub fn held_len(&self) -> usize {
        self.held.capacity() * size_of::<Span>()
    }

    /// Changes the limits for input that is not decoded yet.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.max_args = limits.max_args();
        self.max_bulk_len = limits.max_bulk_len();
    }

    /// Decodes the next request, and appends the spans of its arguments to `args`.
    ///
    /// After [`Step::More`] the caller passes the same bytes with more after them; after another
    /// step, the bytes after the request. The spans of an incomplete request are not appended.
    ///
    /// # Errors
    ///
    /// Fails with the [`ProtocolError`] whose text is the reply. The decoder is unusable after it.
    #[inline]
    pub fn next(&mut self, bytes: &[u8], args: &mut Vec<Span>) -> Result<Step, ProtocolError> {
        match bytes.first() {
            _ if self.done > 0 => self.resume(bytes, args),
            Some(b'*') => self.start(bytes, args),
            Some(_) => self.inline(bytes),
            None => Ok(Step::More { needed: 1 }),
        }
    }

    #[inline]
    fn start(&mut self, bytes: &[u8], args: &mut Vec<Span>) -> Result<Step, ProtocolError> {
        let (left, at) = match short(b'*', bytes) {
            Some(line) => line,
            None => match self.count(bytes)? {
                Some(line) => line,
                None => return Ok(Step::More { needed: 1 }),
            },
        };
        self.searched = 0;
        if left > self.max_args {
            return Err(self.limits.too_many(left));
        }
        if left == 0 {
            return Ok(Step::Empty { consumed: at });
        }
        let whole = args.len();
        let step = self.arguments::<false>(bytes, at, left, args);
        if !matches!(step, Ok(Step::Request { .. })) {
            self.hold(args, whole);
        }
        step
    }

    /// Moves the arguments of an incomplete request out of `args`.
    #[cold]
    fn hold(&mut self, args: &mut Vec<Span>, whole: usize) {
        self.held.extend(args.drain(whole..));
    }

    #[cold]
    fn resume(&mut self, bytes: &[u8], args: &mut Vec<Span>) -> Result<Step, ProtocolError> {
        let mut held = std::mem::take(&mut self.held);
        let step = if self.elided.1 == 0 {
            self.arguments::<false>(bytes, self.done, self.left, &mut held)
        } else {
            self.arguments::<true>(bytes, self.done, self.left, &mut held)
        };
        if matches!(step, Ok(Step::Request { .. })) {
            args.append(&mut held);
            (self.done, self.searched) = (0, 0);
            self.elided = (0, 0);
            held.shrink_to(KEPT_SPANS);
        }
        self.held = held;
        step
    }

    /// Decodes `left` arguments from offset `at` on, one of which may be elided.
    #[inline(always)]
    fn arguments<const ELIDES: bool>(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        mut left: u32,
        args: &mut Vec<Span>,
    ) -> Result<Step, ProtocolError> {
        while left > 0 {
            let rest = bytes.get(at..).unwrap_or_default();
            let line = match short(b'$', rest) {
                Some(line) => Some(line),
                None => self.bulk_len(rest, at)?,
            };
            let Some((announced, line_len)) = line else {
                self.pending = (0, 0);
                return Ok(self.pause(at, left, 1));
            };
            let start = at + line_len;
            let is_elided = ELIDES && at == self.elided.0;
            let beside = if ELIDES && !is_elided { self.elided.1 } else { 0 };
            let whole = start as u64 + u64::from(announced) + u64::from(beside) + 2;
            if announced > self.max_bulk_len || whole > u64::from(self.limits.request_len) {
                return Err(self.limits.too_long(announced.into()));
            }
            let end = if is_elided { start } else { start + announced as usize };
            match bytes.get(end..end + 2) {
                Some(b"\r\n") => {}
                Some(_) => return Err(ProtocolError::ExpectedLineEnd),
                None => {
                    self.pending = (start, announced);
                    return Ok(self.pause(at, left, end + 2 - bytes.len()));
                }
            }
            args.push(if is_elided { Span::elided(announced) } else { Span::between(start, end) });
            at = end + 2;
            left -= 1;
        }
        Ok(Step::Request { consumed: at })
    }

    #[cold]
    fn pause(&mut self, at: usize, left: u32, needed: usize) -> Step {
        (self.done, self.left) = (at, left);
        Step::More { needed }
    }

    /// Returns the number of arguments, with negative ones as 0, and the length of its line.
    #[cold]
    fn count(&mut self, bytes: &[u8]) -> Result<Option<(u32, usize)>, ProtocolError> {
        let invalid = ProtocolError::InvalidMultibulkLength;
        let line = self.number(bytes, 0, ProtocolError::TooBigMultibulkCount, invalid)?;
        let Some((announced, line_len)) = line else {
            return Ok(None);
        };
        let args = u32::try_from(announced.max(0)).map_err(|_| invalid)?;
        Ok(Some((args, line_len)))
    }

    /// Returns the length of the argument at the start of `rest`, and the length of its line.
    #[cold]
    fn bulk_len(&mut self, rest: &[u8], at: usize) -> Result<Option<(u32, usize)>, ProtocolError> {
        let invalid = ProtocolError::InvalidBulkLength;
        match rest.first() {
            Some(b'$') => {}
            Some(other) => return Err(ProtocolError::ExpectedBulk(*other)),
            None => return Ok(None),
        }
        let line = self.number(rest, at, ProtocolError::TooBigBulkCount, invalid)?;
        let Some((announced, line_len)) = line else {
            return Ok(None);
        };
        let announced = u64::try_from(announced).map_err(|_| invalid)?;
        let len = u32::try_from(announced).map_err(|_| self.limits.too_long(announced))?;
        Ok(Some((len, line_len)))
    }

    /// Returns the number on the line at the start of `rest`, after a mark of one byte, and the
    /// length of the line; `None` if the line is incomplete. `at` is its offset in the request.
    fn number(
        &mut self,
        rest: &[u8],
        at: usize,
        too_big: ProtocolError,
        invalid: ProtocolError,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        let Some(end) = self.line_end(b'\r', rest, at, too_big)? else {
            return Ok(None);
        };
        match rest.get(end + 1) {
            Some(b'\n') => {}
            Some(_) => return Err(invalid),
            None => return Ok(None),
        }
        let number = rest.get(1..end).and_then(integer).ok_or(invalid)?;
        Ok(Some((number, end + 2)))
    }

    /// Returns the index of `mark` in the line at the start of `rest`, whose offset is `at`.
    fn line_end(
        &mut self,
        mark: u8,
        rest: &[u8],
        at: usize,
        too_big: ProtocolError,
    ) -> Result<Option<usize>, ProtocolError> {
        let max = self.limits.line_len as usize;
        let line = &rest[..rest.len().min(max.saturating_add(1))];
        let from = self.searched.saturating_sub(at).min(line.len());
        if let Some(found) = memchr(mark, &line[from..]) {
            return Ok(Some(from + found));
        }
        if rest.len() > max {
            return Err(too_big);
        }
        self.searched = at + rest.len();
        Ok(None)
    }

    #[cold]
    fn inline(&mut self, bytes: &[u8]) -> Result<Step, ProtocolError> {
        let Some(end) = self.line_end(b'\n', bytes, 0, ProtocolError::TooBigInline)? else {
            return Ok(Step::More { needed: 1 });
        };
        self.searched = 0;
        // A CR before the end is white space.
        let line = inline::split(&bytes[..end])?;
        let consumed = end + 1;
        if line.args.is_empty() {
            return Ok(Step::Empty { consumed });
        }
        Ok(Step::Inline { consumed, line: Box::new(line) })
    }
}
