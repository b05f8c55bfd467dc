//! Plans: the records that have the chunks of a range, or the missing chunks.

use crate::chunks::Chunks;
use crate::key::Key;
use crate::ranges::push;
use nuthatch_segments::{Found, ReadError};
use std::ops::Range;

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// Everything was found.
    Found(T),
    /// The missing parts of the range, in order; they do not touch.
    Missing(Vec<Range<u64>>),
}

impl<T> Lookup<T> {
    /// Returns what was found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Missing(_) => None,
        }
    }

    /// Returns what is missing, or nothing if everything was found.
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

/// Consecutive chunks in one record.
pub(crate) struct Piece<'a> {
    pub(crate) found: Found<'a>,
    pub(crate) chunks: Range<u64>,
}

impl Piece<'_> {
    /// Returns the range of the chunks in the data of the record.
    pub(crate) fn bytes(&self) -> Range<u64> {
        let last = self.chunks.end - 1;
        self.found.part_start(self.chunks.start)
            ..self.found.part_start(last) + self.found.part_len(last)
    }

    pub(crate) fn len(&self) -> u64 {
        let bytes = self.bytes();
        bytes.end - bytes.start
    }
}

/// The lengths that the chunks of an object may have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lengths {
    Any,
    /// All have the same length, except that the last one has the rest.
    Blocks {
        object_len: u64,
        block_len: u64,
    },
}

impl Lengths {
    /// Returns the expected length of a chunk, or `None` for any.
    fn of(self, chunk: u64) -> Option<u64> {
        match self {
            Self::Any => None,
            Self::Blocks { object_len, block_len } => {
                Some(object_len.saturating_sub(chunk.saturating_mul(block_len)).min(block_len))
            }
        }
    }

    /// Returns whether a chunk that was found has the expected length.
    fn fit(self, found: &Found<'_>, chunk: u64) -> bool {
        self.of(chunk).is_none_or(|len| len == found.part_len(chunk))
    }

    /// Returns the end of the consecutive chunks from `first` on that are stored with the expected
    /// lengths.
    fn available_until(self, found: &Found<'_>, first: u64) -> u64 {
        let stored = found.available_from(first);
        if let Self::Blocks { block_len, .. } = self {
            let is_regular =
                found.uniform_len() == Some(block_len) && self.fit(found, stored.end - 1);
            if !is_regular {
                return stored.clone().find(|chunk| !self.fit(found, *chunk)).unwrap_or(stored.end);
            }
        }
        stored.end
    }
}

/// Maximum number of lookups of a range whose records are evicted before they are read.
const MAX_TRIES: usize = 4;

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
        let candidates = self.segments.candidates(&key.name, &key.label, &range);
        while chunk < range.end {
            if let Some(numbers) = &candidates {
                let after = &numbers[numbers.partition_point(|number| *number < chunk)..];
                let next = after.first().map_or(range.end, |next| *next);
                if next > chunk {
                    push(&mut missing, chunk..next);
                    chunk = next;
                    continue;
                }
            }
            #[cfg(test)]
            tests::count_lookup();
            let found = self.segments.find(&key.id(chunk), &key.label);
            let Some(found) = found.filter(|found| lengths.fit(found, chunk)) else {
                push(&mut missing, chunk..chunk + 1);
                chunk += 1;
                continue;
            };
            let start = chunk;
            chunk = lengths.available_until(&found, chunk).min(range.end);
            if missing.is_empty() {
                pieces.push(Piece { found, chunks: start..chunk });
            }
        }
        if missing.is_empty() { Lookup::Found(pieces) } else { Lookup::Missing(missing) }
    }

    /// Finds the chunks of a range and reads them, and repeats this if they are evicted meanwhile.
    pub(crate) fn with_plan<T>(
        &self,
        key: &Key,
        range: &Range<u64>,
        lengths: Lengths,
        mut read: impl FnMut(&[Piece<'_>]) -> Result<T, ReadError>,
    ) -> Lookup<T> {
        for _ in 0..MAX_TRIES {
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

#[cfg(test)]
mod tests {
    use crate::{Chunks, Key, Lookup, Options};
    use std::cell::Cell;

    thread_local! {
        static LOOKUPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count_lookup() {
        LOOKUPS.with(|lookups| lookups.set(lookups.get() + 1));
    }

    #[test]
    fn a_range_of_2_to_the_40_chunks_is_looked_through_by_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new().limit(16 << 20);
        let chunks = Chunks::open(folder.path(), &options).expect("a cache");
        let key = Key::named("an object").expect("a key");
        let far = 1 << 39;
        chunks.put(&key, 3..5, &[0, 1, 2], b"ab").expect("a put");
        chunks.put(&key, far..far + 1, &[0, 1], b"c").expect("a put");
        let end = 1 << 40;
        let missing = chunks.missing(&key, 0..end).expect("an answer");
        assert_eq!(missing, [0..3, 5..far, far + 1..end]);
        assert!(matches!(chunks.get(&key, 0..end), Ok(Lookup::Missing(_))));
        assert!(matches!(chunks.view(&key, 0..end), Ok(Lookup::Missing(_))));
        let absent = Key::named("another one").expect("a key");
        let missing = chunks.missing(&absent, 0..end).expect("an answer");
        assert_eq!(missing, std::slice::from_ref(&(0..end)));
        let lookups = LOOKUPS.with(Cell::get);
        assert!(lookups <= 3 * 3, "{lookups} lookups for three chunks in three calls");
    }

    #[test]
    fn blocks_of_an_object_of_2_to_the_60_bytes_are_looked_through_by_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new().limit(16 << 20);
        let chunks = Chunks::open(folder.path(), &options).expect("a cache");
        let len = 1 << 60;
        let blocks = chunks.blocks("http://host/a", "tag", len, 1024).expect("an object");
        blocks.put(4096, &[7; 2048]).expect("a put");
        assert_eq!(blocks.missing(0..len).expect("an answer"), [0..4096, 6144..len]);
        assert!(matches!(blocks.get(0..len), Ok(Lookup::Missing(_))));
    }
}
