//! Bytes where they lie.

use crate::plan::Piece;
use nuthatch_segments::{Slice, Unread};
use std::ops::Range;

/// Bytes of an object as a list of slices, each of which one put brought. They stay as they are
/// while this lives, even if their segments are evicted; its disk space comes back after that.
#[derive(Debug)]
pub struct View {
    parts: Vec<Part>,
    len: u64,
}

#[derive(Debug)]
enum Part {
    Lent(Slice),
    /// What could not be mapped.
    Owned(Vec<u8>),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Lent(slice) => slice,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl View {
    /// Bytes of pieces: without so many at the beginning, and no more than so many.
    pub(crate) fn new(pieces: &[Piece<'_>], within: Range<u64>) -> Result<Self, Unread> {
        let mut parts = Vec::with_capacity(pieces.len());
        let mut before = 0;
        for piece in pieces {
            let bytes = piece.bytes();
            let end = before + (bytes.end - bytes.start);
            let from = bytes.start + within.start.max(before) - before;
            let to = bytes.start + within.end.min(end) - before;
            before = end;
            parts.push(if let Some(slice) = piece.found.lend(from..to)? {
                Part::Lent(slice)
            } else {
                let mut owned = vec![0; (to - from) as usize];
                piece.found.read(from, &mut owned)?;
                Part::Owned(owned)
            });
        }
        Ok(Self { parts, len: within.end - within.start })
    }

    /// The slices, in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(Part::bytes)
    }

    /// All bytes together.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.slices().collect::<Vec<_>>().concat()
    }

    /// Whether the bytes are still those that were stored. False if a program that knows nothing of
    /// this cache cut a file off while it was mapped: then some of them are zeros. What such a
    /// program writes into a file shows up in views of it, and this does not tell.
    pub fn intact(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Lent(slice) => slice.intact(),
            Part::Owned(_) => true,
        })
    }
}
