//! Finding the chunks of a range: in which records they lie, and which are missing.

use crate::chunks::Chunks;
use crate::key::Key;
use nuthatch_segments::{Found, Unread};
use std::ops::Range;

/// What was looked for: all of it, or what is missing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// All of it.
    Found(T),
    /// The parts of the range that are not there, in order, none of them touching the next.
    Missing(Vec<Range<u64>>),
}

impl<T> Lookup<T> {
    /// What was found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Missing(_) => None,
        }
    }

    /// What is missing; nothing if all was found.
    pub fn missing(&self) -> &[Range<u64>] {
        match self {
            Self::Found(_) => &[],
            Self::Missing(missing) => missing,
        }
    }

    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Found(found) => Lookup::Found(change(found)),
            Self::Missing(missing) => Lookup::Missing(missing),
        }
    }
}

/// Chunks that follow each other in one record.
pub(crate) struct Piece<'a> {
    pub(crate) found: Found<'a>,
    pub(crate) chunks: Range<u64>,
}

impl Piece<'_> {
    /// Where the bytes of its chunks lie in the data of the record.
    pub(crate) fn bytes(&self) -> Range<u64> {
        let last = self.chunks.end - 1;
        self.found.start_of(self.chunks.start)..self.found.start_of(last) + self.found.len_of(last)
    }

    pub(crate) fn len(&self) -> u64 {
        let bytes = self.bytes();
        bytes.end - bytes.start
    }
}

/// How often a lookup begins again when what was found went away before it was read.
const TRIES: usize = 4;

/// Adds a range to others that end before it, or where it begins.
pub(crate) fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut().filter(|last| last.end == range.start) {
        Some(last) => last.end = range.end,
        None => ranges.push(range),
    }
}

impl Chunks {
    /// Finds the chunks of a range, each of which must have the length that `expected` says, if any.
    pub(crate) fn plan(
        &self,
        key: &Key,
        range: Range<u64>,
        expected: impl Fn(u64) -> Option<u64>,
    ) -> Lookup<Vec<Piece<'_>>> {
        let mut pieces = Vec::new();
        let mut missing = Vec::new();
        let fits = |found: &Found<'_>, chunk| {
            found.has(chunk) && expected(chunk).is_none_or(|len| len == found.len_of(chunk))
        };
        let mut chunk = range.start;
        while chunk < range.end {
            let found = self.segments.find(&key.id(chunk), &key.label);
            let Some(found) = found.filter(|found| fits(found, chunk)) else {
                push(&mut missing, chunk..chunk + 1);
                chunk += 1;
                continue;
            };
            let start = chunk;
            let end = found.numbers().end.min(range.end);
            chunk += 1;
            while chunk < end && fits(&found, chunk) {
                chunk += 1;
            }
            if missing.is_empty() {
                pieces.push(Piece { found, chunks: start..chunk });
            }
        }
        if missing.is_empty() { Lookup::Found(pieces) } else { Lookup::Missing(missing) }
    }

    /// Finds the chunks of a range and does something with them, again if they went away meanwhile.
    pub(crate) fn with_plan<T>(
        &self,
        key: &Key,
        range: &Range<u64>,
        expected: impl Fn(u64) -> Option<u64>,
        mut read: impl FnMut(&[Piece<'_>]) -> Result<T, Unread>,
    ) -> Lookup<T> {
        for _ in 0..TRIES {
            let pieces = match self.plan(key, range.clone(), &expected) {
                Lookup::Found(pieces) => pieces,
                Lookup::Missing(missing) => return Lookup::Missing(missing),
            };
            if let Ok(result) = read(&pieces) {
                for piece in &pieces {
                    piece.found.count_use(piece.chunks.clone());
                }
                return Lookup::Found(result);
            }
        }
        Lookup::Missing(vec![range.clone()])
    }
}
