//! Spans of arguments.

/// The position of an argument in its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte.
    pub start: u32,
    /// The number of bytes.
    pub len: u32,
}

impl Span {
    /// Creates the span of an argument of this length whose bytes are not in the request: it was
    /// received elsewhere. Its offset exceeds any request.
    pub(crate) fn elided(len: u32) -> Self {
        Self { start: u32::MAX, len }
    }

    /// Returns whether the bytes of the argument are not in the request.
    pub(crate) fn is_elided(self) -> bool {
        self.start == u32::MAX
    }

    /// Creates the span from `start` to `end`, which fit in 32 bits.
    #[inline]
    pub(crate) fn between(start: usize, end: usize) -> Self {
        Self { start: start as u32, len: (end - start) as u32 }
    }

    /// Returns the argument in the bytes of its request; `None` if the span exceeds them.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> Option<&[u8]> {
        bytes.get(self.start as usize..)?.get(..self.len as usize)
    }
}
