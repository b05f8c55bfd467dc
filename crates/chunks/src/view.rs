//! Views: bytes of an object in the files of the cache.

use crate::plan::Piece;
use nuthatch_segments::{ReadError, Slice};
use std::ops::Range;

/// Bytes of an object as a list of slices, one for each record. They stay valid while this lives,
/// even if their segments are evicted; the disk space is freed when the last view ends.
#[derive(Debug)]
pub struct View {
    parts: Vec<ViewPart>,
    len: u64,
}

#[derive(Debug)]
enum ViewPart {
    Mapped(Slice),
    /// A copy of bytes that could not be mapped.
    Owned(Vec<u8>),
}

impl ViewPart {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(slice) => slice,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl View {
    /// Returns a view of a range of the bytes of pieces.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError`] if a piece cannot be read.
    pub(crate) fn new(pieces: &[Piece<'_>], within: Range<u64>) -> Result<Self, ReadError> {
        let mut parts = Vec::with_capacity(pieces.len());
        let mut before = 0;
        for piece in pieces {
            let bytes = piece.bytes();
            let end = before + (bytes.end - bytes.start);
            let from = bytes.start + within.start.max(before) - before;
            let to = bytes.start + within.end.min(end) - before;
            before = end;
            parts.push(if let Some(slice) = piece.found.view(from..to)? {
                ViewPart::Mapped(slice)
            } else {
                let mut owned = vec![0; (to - from) as usize];
                piece.found.read(from, &mut owned)?;
                ViewPart::Owned(owned)
            });
        }
        Ok(Self { parts, len: within.end - within.start })
    }

    /// Returns the slices, in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(ViewPart::bytes)
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.slices().collect::<Vec<_>>().concat()
    }

    /// Returns false if another program truncated a mapped file: then some of the bytes are zeros.
    /// Bytes that another program wrote to a file are not detected.
    pub fn is_intact(&self) -> bool {
        self.parts.iter().all(|part| match part {
            ViewPart::Mapped(slice) => slice.is_intact(),
            ViewPart::Owned(_) => true,
        })
    }
}
