//! Decodes received bytes into requests.

pub(crate) mod base64;
mod command;
pub(crate) mod error;
pub(crate) mod flags;
mod meta;
pub(crate) mod request;
mod text;
mod words;

use super::Error;
use super::Flags;
use super::{Get, Key, Keys, Meta, MetaVerb, Request, Store, StoreMode, TooLarge};
use super::{MAX_KEY_LEN, MAX_LINE_LEN, MAX_OBJECT_LEN};
use command::{Command, Fault, Rest};
use words::{Words, plain_len};

const LINE_END_LEN: usize = 2;

/// Limits of what a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of a value, at most [`MAX_OBJECT_LEN`].
    pub object_len: usize,
    /// Maximum bytes of a line of `get`, `gets`, `gat` and `gats`. memcached has no such limit.
    pub many_keys_len: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { object_len: 512 << 20, many_keys_len: 8 << 20 }
    }
}

/// Maximum bytes of a value before login, which is a user name and a password.
const OBJECT_LEN_BEFORE_AUTH: usize = 4 << 10;

impl Limits {
    /// Returns the limits for a client that has not logged in.
    #[must_use]
    pub fn before_auth(self) -> Self {
        let object_len = self.object_len.min(OBJECT_LEN_BEFORE_AUTH);
        Self { object_len, many_keys_len: MAX_LINE_LEN }
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
    /// A request that is refused. The client gets [`Error::text`].
    Error {
        /// The reason.
        error: Error,
        /// The number of bytes that it takes.
        consumed: usize,
        /// Whether the connection must be closed, since the start of the next request is unknown.
        /// The error is then replied even if the request has `noreply`.
        close: bool,
    },
    /// Bytes without a reply: the data of a refused request, or an invalid request with `noreply`.
    Skip {
        /// The number of bytes.
        consumed: usize,
    },
    /// An incomplete request.
    More {
        /// The minimum number of missing bytes.
        needed: usize,
    },
}

/// Finds requests in received bytes.
///
/// It remembers its progress in an incomplete request, so that no byte is examined twice. The bytes
/// themselves stay with the caller.
#[derive(Clone, Debug)]
pub struct Decoder {
    limits: Limits,
    /// The number of bytes that contain no end of the first line.
    searched: usize,
    /// The length of the request, once its line is parsed.
    needed: usize,
    /// The number of missing bytes of a refused data block.
    skip: usize,
    /// The offset of the data block of the incomplete request.
    block_start: usize,
    elided: bool,
    /// Whether the value of the last request was received elsewhere.
    was_elided: bool,
}

impl Decoder {
    /// Creates a decoder for a new connection.
    pub fn new(limits: Limits) -> Self {
        let object_len = limits.object_len.min(MAX_OBJECT_LEN);
        let many_keys_len = limits.many_keys_len.clamp(MAX_LINE_LEN, MAX_OBJECT_LEN);
        let limits = Limits { object_len, many_keys_len };
        Self {
            limits,
            searched: 0,
            needed: 0,
            skip: 0,
            block_start: 0,
            elided: false,
            was_elided: false,
        }
    }

    /// Returns the offset and length of the value that an incomplete request is still waiting for,
    /// after [`Step::More`].
    pub fn pending_value(&self) -> Option<(usize, usize)> {
        let is_pending = self.needed > 0 && !self.elided;
        is_pending.then(|| (self.block_start, self.needed - self.block_start - LINE_END_LEN))
    }

    /// Continues without the bytes of the [pending value](Self::pending_value), which is received
    /// elsewhere: from here on `next` gets the request without them, and returns an empty value.
    /// [`was_elided`](Self::was_elided) identifies the request.
    pub fn elide(&mut self) {
        if self.needed > 0 {
            self.elided = true;
            self.needed = self.block_start + LINE_END_LEN;
        }
    }

    /// Returns whether the value of the last request, error or skipped bytes was received
    /// elsewhere, and resets this.
    #[inline]
    pub fn was_elided(&mut self) -> bool {
        std::mem::take(&mut self.was_elided)
    }

    /// Decodes the next step. `bytes` are all received bytes that are not consumed. After
    /// [`Step::More`] they must start with the same bytes.
    #[inline]
    pub fn next<'b>(&mut self, bytes: &'b [u8]) -> Step<'b> {
        // All three are 0 at the start of a request.
        if self.skip | self.searched | self.needed == 0
            && let Some(step) = quick(bytes)
        {
            return step;
        }
        self.next_of_any(bytes)
    }

    fn next_of_any<'b>(&mut self, bytes: &'b [u8]) -> Step<'b> {
        if self.skip > 0 {
            return self.skip(bytes);
        }
        if bytes.len() < self.needed {
            return Step::More { needed: self.needed - bytes.len() };
        }
        let line = match self.line(bytes, MAX_LINE_LEN) {
            None if takes_many_keys(bytes) => self.line(bytes, self.limits.many_keys_len),
            short => short,
        };
        let Some((line, consumed)) = line else { return self.no_line(bytes) };
        match parse(line) {
            Ok(Command::Whole(request)) => {
                self.searched = 0;
                Step::Request { request, consumed }
            }
            Ok(Command::Block(request, len)) => self.block(bytes, consumed, request, len),
            Err(fault) => self.fault(fault, consumed),
        }
    }

    /// Returns the first line without its end, and its length with it, unless it exceeds `limit`.
    #[inline]
    fn line<'b>(&self, bytes: &'b [u8], limit: usize) -> Option<(&'b [u8], usize)> {
        let candidates = bytes.get(self.searched..bytes.len().min(limit + LINE_END_LEN))?;
        let newline = self.searched + memchr::memchr(b'\n', candidates)?;
        let line = &bytes[..newline];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (line.len() <= limit).then_some((line, newline + 1))
    }

    /// Handles a missing line end. The limit depends on the start of the line and not on how much
    /// has arrived, so that the same bytes are the same requests however they are received.
    #[cold]
    fn no_line<'b>(&mut self, bytes: &'b [u8]) -> Step<'b> {
        let many = takes_many_keys(bytes);
        let limit = if many { self.limits.many_keys_len } else { MAX_LINE_LEN };
        if bytes.len() >= limit + LINE_END_LEN {
            let consumed = bytes.len();
            self.searched = 0;
            return Step::Error { error: Error::LineTooLong, consumed, close: true };
        }
        self.searched = bytes.len();
        Step::More { needed: 1 }
    }

    fn block<'b>(
        &mut self,
        bytes: &'b [u8],
        start: usize,
        request: Request<'b>,
        len: usize,
    ) -> Step<'b> {
        self.searched = 0;
        if len > self.limits.object_len {
            self.skip = len.saturating_add(LINE_END_LEN);
            return Step::Request { request: too_large(request), consumed: start };
        }
        let end = start + if self.elided { 0 } else { len } + LINE_END_LEN;
        let Some(block) = bytes.get(start..end) else {
            (self.block_start, self.needed) = (start, end);
            return Step::More { needed: end - bytes.len() };
        };
        self.needed = 0;
        self.was_elided = std::mem::take(&mut self.elided);
        match block.strip_suffix(b"\r\n") {
            Some(value) => Step::Request { request: with_value(request, value), consumed: end },
            // Unlike memcached, which continues with the next line: it may be part of the value.
            None => self.fault(Fault::without_length(Error::BadChunk), end),
        }
    }

    fn fault<'b>(&mut self, fault: Fault, consumed: usize) -> Step<'b> {
        self.searched = 0;
        let Fault { error, quiet, rest } = fault;
        if let Rest::Block(len) = rest {
            self.skip = len.saturating_add(LINE_END_LEN);
        }
        if quiet {
            Step::Skip { consumed }
        } else {
            Step::Error { error, consumed, close: rest == Rest::Unknown }
        }
    }

    #[cold]
    fn skip<'b>(&mut self, bytes: &'b [u8]) -> Step<'b> {
        let consumed = self.skip.min(bytes.len());
        self.skip -= consumed;
        if consumed == 0 { Step::More { needed: 1 } } else { Step::Skip { consumed } }
    }
}

/// Decodes `get` with one key and `mg`, by far the most frequent requests, in one pass. Everything
/// unusual is left to the general path.
#[inline]
fn quick(bytes: &[u8]) -> Option<Step<'_>> {
    let (verb, rest) = bytes.split_at_checked(4)?;
    match verb {
        b"get " => {
            let (text, end) = quick_key(rest)?;
            let get = Get { keys: Keys { text }, exptime: None, cas: false };
            quick_step(Request::Get(get), bytes, end)
        }
        [b'm', b'g', b' ', _] => {
            let (key, rest) = quick_key(&bytes[3..])?;
            let (flags, end) = Flags::parse_plain(rest).ok()?;
            let key = Key { text: key, base64: false };
            let short = bytes.len() - end.len() <= MAX_LINE_LEN && !flags.has(b'b');
            let meta = Meta { verb: MetaVerb::Get, key, value: b"", flags };
            short.then(|| quick_step(Request::Meta(meta), bytes, end))?
        }
        _ => None,
    }
}

#[inline]
fn quick_key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = plain_len(&bytes[..bytes.len().min(MAX_KEY_LEN + 1)]);
    if (1..=MAX_KEY_LEN).contains(&len) { Some(bytes.split_at(len)) } else { None }
}

/// Returns a request that ends at `end`, which must be the end of its line.
#[inline]
fn quick_step<'b>(request: Request<'b>, bytes: &[u8], end: &[u8]) -> Option<Step<'b>> {
    let consumed = bytes.len() - end.len() + LINE_END_LEN;
    end.starts_with(b"\r\n").then_some(Step::Request { request, consumed })
}

fn parse(line: &[u8]) -> Result<Command<'_>, Fault> {
    let mut words = Words { rest: line };
    let verb = words.next().ok_or(Error::UnknownCommand)?;
    match *verb {
        [b'm', letter] => meta::parse(letter, words.rest),
        _ => text::parse(verb, words.rest),
    }
}

/// Returns the request of a line without its end, with this value if it has one.
pub(crate) fn request_of<'b>(line: &'b [u8], value: &'b [u8]) -> Option<Request<'b>> {
    match parse(line).ok()? {
        Command::Whole(request) => Some(request),
        Command::Block(request, len) => (value.len() == len).then(|| with_value(request, value)),
    }
}

/// Returns whether a line is of a command with many keys. The bytes within any limit decide it;
/// until they have arrived the result does not matter.
fn takes_many_keys(bytes: &[u8]) -> bool {
    let verbs: [&[u8]; 4] = [b"get ", b"gets ", b"gat ", b"gats "];
    let Some(start) = bytes.get(..MAX_LINE_LEN) else { return false };
    let line = start.trim_ascii_start();
    verbs.iter().any(|verb| line.starts_with(verb))
}

/// Returns the same request with this value, if it has a value.
pub(crate) fn with_value<'b>(request: Request<'b>, value: &'b [u8]) -> Request<'b> {
    match request {
        Request::Store(store) => Request::Store(Store { value, ..store }),
        Request::Meta(meta) => Request::Meta(Meta { value, ..meta }),
        other => other,
    }
}

fn noreply(request: &Request<'_>) -> bool {
    matches!(request, Request::Store(Store { noreply: true, .. }))
}

/// Returns the request for an object that is too long. The old value is removed only if the request
/// replaces it unconditionally. memcached removes it for each mode of `ms`, and only for `set` of
/// the text commands.
#[cold]
fn too_large(request: Request<'_>) -> Request<'_> {
    let (key, remove) = match request {
        Request::Store(Store { mode, key, cas, .. }) => {
            (Key { text: key, base64: false }, mode == StoreMode::Set && cas.is_none())
        }
        Request::Meta(meta) => {
            let replaces = meta.verb == MetaVerb::Set(StoreMode::Set);
            (meta.key, replaces && meta.flags.compare_cas().is_none())
        }
        other => return other,
    };
    Request::TooLarge(TooLarge { key, remove, noreply: noreply(&request) })
}
