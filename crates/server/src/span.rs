//! Where an argument lies in its request.

/// Where an argument lies, from the start of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// How many bytes.
    pub len: u32,
}

impl Span {
    /// Of an argument of so many bytes that lies elsewhere, and not in its request: no request is
    /// so long that it could hold this span.
    pub(crate) fn elsewhere(len: u32) -> Self {
        Self { start: u32::MAX, len }
    }

    /// Whether the argument lies elsewhere.
    pub(crate) fn is_elsewhere(self) -> bool {
        self.start == u32::MAX
    }

    /// The span from `start` up to `end`, both within a request and so within 32 bits.
    #[inline]
    pub(crate) fn between(start: usize, end: usize) -> Self {
        Self { start: start as u32, len: (end - start) as u32 }
    }

    /// The argument, out of the bytes of its request; none if these are others.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> Option<&[u8]> {
        bytes.get(self.start as usize..)?.get(..self.len as usize)
    }
}
