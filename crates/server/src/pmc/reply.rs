//! Encodes replies.

use super::{Fault, SEPARATOR};
use memchr::memchr;

/// Appends replies to `out`.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Reply<'a> {
    /// Creates an encoder that appends to this buffer.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Returns whether this protocol can send the value: it has no separator. Otherwise replies
    /// with an error.
    ///
    /// A separator within the value would end the reply early, and the client would take the rest
    /// for the replies to later requests. Only other protocols can store such a value.
    pub fn takes(&mut self, value: &[u8]) -> bool {
        let can = memchr(SEPARATOR, value).is_none();
        if !can {
            self.message(b"ERROR: Value holds a separator");
        }
        can
    }

    /// Ends a value, which the caller has appended.
    pub fn value_end(&mut self) {
        self.out.push(SEPARATOR);
    }

    /// Replies that there is no value.
    pub fn miss(&mut self) {
        self.message(b"(nil)");
    }

    /// Replies that a value is stored or removed.
    pub fn ok(&mut self) {
        self.message(b"OK");
    }

    /// Replies that there is no value to remove.
    pub fn no_such_key(&mut self) {
        self.message(b"ERROR: Key does not exist");
    }

    /// Replies that the message is invalid.
    pub fn fault(&mut self, fault: Fault) {
        self.message(fault.text().as_bytes());
    }

    /// Replies with another error. Separators in `text` become spaces.
    pub fn error(&mut self, text: &str) {
        self.out.extend_from_slice(b"ERROR: ");
        self.out.extend(text.bytes().map(|byte| if byte == SEPARATOR { b' ' } else { byte }));
        self.out.push(SEPARATOR);
    }

    fn message(&mut self, message: &[u8]) {
        self.out.reserve(message.len() + 1);
        self.out.extend_from_slice(message);
        self.out.push(SEPARATOR);
    }
}
