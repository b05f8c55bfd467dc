//! From replies to bytes.

use super::{Fault, SEPARATOR};
use memchr::memchr;

/// Appends replies to `out`.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Reply<'a> {
    /// Replies to one client.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Whether a value that was asked for can follow; if not, that is the reply.
    ///
    /// A separator within it would end the reply early, and what follows would answer the requests
    /// behind this one. Only other protocols can store such a value; here it is an error.
    pub fn takes(&mut self, value: &[u8]) -> bool {
        let can = memchr(SEPARATOR, value).is_none();
        if !can {
            self.message(b"ERROR: Value holds a separator");
        }
        can
    }

    /// Ends a value, which was appended from wherever it is.
    pub fn value_end(&mut self) {
        self.out.push(SEPARATOR);
    }

    /// There is no value.
    pub fn miss(&mut self) {
        self.message(b"(nil)");
    }

    /// It is stored, or removed.
    pub fn ok(&mut self) {
        self.message(b"OK");
    }

    /// There is nothing to remove.
    pub fn no_such_key(&mut self) {
        self.message(b"ERROR: Key does not exist");
    }

    /// The message was no request.
    pub fn fault(&mut self, fault: Fault) {
        self.message(fault.text().as_bytes());
    }

    /// What else went wrong. Separators in `text` become spaces.
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
