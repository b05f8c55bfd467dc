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

/// What lengths the chunks of an object may have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lengths {
    Any,
    /// All the same, but for the last one, which has the rest.
    Blocks {
        object_len: u64,
        block_len: u64,
    },
}

impl Lengths {
    fn of(self, chunk: u64) -> Option<u64> {
        match self {
            Self::Any => None,
            Self::Blocks { object_len, block_len } => {
                Some(object_len.saturating_sub(chunk.saturating_mul(block_len)).min(block_len))
            }
        }
    }

    /// Whether a chunk that was found has the length that it should.
    fn fit(self, found: &Found<'_>, chunk: u64) -> bool {
        self.of(chunk).is_none_or(|len| len == found.len_of(chunk))
    }

    /// The end of the chunks from one on that are there and have the lengths that they should.
    fn run(self, found: &Found<'_>, from: u64) -> u64 {
        let run = found.run(from);
        if let Self::Blocks { block_len, .. } = self {
            let regular = found.uniform() == Some(block_len) && self.fit(found, run.end - 1);
            if !regular {
                return run.clone().find(|chunk| !self.fit(found, *chunk)).unwrap_or(run.end);
            }
        }
        run.end
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
    /// Finds the chunks of a range.
    pub(crate) fn plan(
        &self,
        key: &Key,
        range: Range<u64>,
        lengths: Lengths,
    ) -> Lookup<Vec<Piece<'_>>> {
        let mut pieces = Vec::new();
        let mut missing = Vec::new();
        let mut chunk = range.start;
        while chunk < range.end {
            let found = self.segments.find(&key.id(chunk), &key.label);
            let Some(found) = found.filter(|found| lengths.fit(found, chunk)) else {
                push(&mut missing, chunk..chunk + 1);
                chunk += 1;
                continue;
            };
            let start = chunk;
            chunk = lengths.run(&found, chunk).min(range.end);
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
        lengths: Lengths,
        mut read: impl FnMut(&[Piece<'_>]) -> Result<T, Unread>,
    ) -> Lookup<T> {
        for _ in 0..TRIES {
            let pieces = match self.plan(key, range.clone(), lengths) {
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
