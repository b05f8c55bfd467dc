//! External sort of pairs of numbers: sorted runs in memory or in a file, and their merge.

use super::spill::SpillFile;
use crate::error::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Two numbers. Pairs sort by the first, then by the second.
pub(crate) type Pair = (u64, u64);

/// Length of a pair in a file, in bytes.
pub(crate) const PAIR_LEN: usize = 16;

/// One of this many pairs of a spilled run is also kept in memory, to search the run.
const SAMPLE_INTERVAL: usize = 256;

/// Number of pairs of one write: 64 KiB.
const PAIRS_PER_WRITE: usize = (64 << 10) / PAIR_LEN;

/// A run of sorted pairs.
pub(crate) enum Run {
    /// Pairs in memory.
    Memory(Vec<Pair>),
    /// Pairs in the spill file.
    Spilled {
        /// Offset of the first pair.
        offset: u64,
        /// Number of pairs.
        count: usize,
        /// First number of every [`SAMPLE_INTERVAL`]th pair.
        samples: Vec<u64>,
    },
}

impl Run {
    /// Writes sorted pairs to the file.
    pub(crate) fn spill(pairs: &[Pair], file: &SpillFile) -> Result<Self> {
        let offset = file.reserve((pairs.len() * PAIR_LEN) as u64);
        let mut at = offset;
        // Written in pieces: all bytes at once would take as much memory as the pairs.
        for piece in pairs.chunks(PAIRS_PER_WRITE) {
            let words = piece.iter().flat_map(|(first, second)| [first, second]);
            let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
            file.write_at(&bytes, at)?;
            at += bytes.len() as u64;
        }
        let samples = pairs.iter().step_by(SAMPLE_INTERVAL).map(|pair| pair.0).collect();
        Ok(Self::Spilled { offset, count: pairs.len(), samples })
    }

    /// Appends to `out` the pairs whose first number is in the range. Both ends are inclusive.
    pub(crate) fn read_range(
        &self,
        range: (u64, u64),
        file: Option<&SpillFile>,
        out: &mut Vec<Pair>,
    ) -> Result<()> {
        let (first, last) = range;
        let within = |pairs: &[Pair]| {
            let start = pairs.partition_point(|pair| pair.0 < first);
            start..start + pairs[start..].partition_point(|pair| pair.0 <= last)
        };
        match self {
            Self::Memory(pairs) => out.extend_from_slice(&pairs[within(pairs)]),
            Self::Spilled { offset, count, samples } => {
                // The block before the first sample at or above the range may end within the range.
                let start = samples.partition_point(|sample| *sample < first).saturating_sub(1);
                let end = samples.partition_point(|sample| *sample <= last);
                let places = start * SAMPLE_INTERVAL..(end * SAMPLE_INTERVAL).min(*count);
                let mut pairs = Vec::new();
                if let Some(file) = file.filter(|_| !places.is_empty()) {
                    read_pairs(file, *offset, places, &mut pairs)?;
                }
                out.extend_from_slice(&pairs[within(&pairs)]);
            }
        }
        Ok(())
    }
}

/// Appends to `out` the pairs with these indices of a run that begins at `offset`.
fn read_pairs(
    file: &SpillFile,
    offset: u64,
    places: Range<usize>,
    out: &mut Vec<Pair>,
) -> Result<()> {
    let mut bytes = vec![0; places.len() * PAIR_LEN];
    file.read_at(&mut bytes, offset + (places.start * PAIR_LEN) as u64)?;
    let words = bytes.as_chunks::<8>().0.as_chunks::<2>().0;
    out.extend(words.iter().map(|pair| (u64::from_le_bytes(pair[0]), u64::from_le_bytes(pair[1]))));
    Ok(())
}

/// A merge of several runs.
pub(crate) struct Merge<'a> {
    file: Option<&'a SpillFile>,
    cursors: Vec<Cursor>,
    heap: BinaryHeap<Reverse<(Pair, usize)>>,
}

/// A position in a run.
struct Cursor {
    run: Run,
    /// Number of pairs of one read.
    piece: usize,
    /// Indices of the pairs that are not read into the buffer yet.
    unread: Range<usize>,
    buffer: Vec<Pair>,
    next: usize,
}

impl Cursor {
    /// Returns the next pair, or `None` at the end of the run.
    fn next(&mut self, file: Option<&SpillFile>) -> Result<Option<Pair>> {
        if self.next == self.buffer.len() {
            self.next = 0;
            self.buffer.clear();
            let end = self.unread.end.min(self.unread.start + self.piece);
            let places = self.unread.start..end;
            self.unread.start = end;
            match (&self.run, file) {
                (Run::Memory(pairs), _) => self.buffer.extend_from_slice(&pairs[places]),
                (Run::Spilled { offset, .. }, Some(file)) => {
                    read_pairs(file, *offset, places, &mut self.buffer)?;
                }
                (Run::Spilled { .. }, None) => {}
            }
        }
        let pair = self.buffer.get(self.next).copied();
        self.next += 1;
        Ok(pair)
    }
}

impl<'a> Merge<'a> {
    /// Starts a merge with buffers of about `memory` bytes in total.
    pub(crate) fn new(runs: Vec<Run>, file: Option<&'a SpillFile>, memory: usize) -> Result<Self> {
        let piece = (memory / runs.len().max(1) / PAIR_LEN).clamp(64, 4096);
        let cursors = runs.into_iter().map(|run| {
            let count = match &run {
                Run::Memory(pairs) => pairs.len(),
                Run::Spilled { count, .. } => *count,
            };
            Cursor { run, piece, unread: 0..count, buffer: Vec::new(), next: 0 }
        });
        let mut merge = Self { file, cursors: cursors.collect(), heap: BinaryHeap::new() };
        for number in 0..merge.cursors.len() {
            merge.advance(number)?;
        }
        Ok(merge)
    }

    /// Moves the next pair of a run to the heap.
    fn advance(&mut self, number: usize) -> Result<()> {
        if let Some(pair) = self.cursors[number].next(self.file)? {
            self.heap.push(Reverse((pair, number)));
        }
        Ok(())
    }

    /// Calls `visit` with every pair, in order.
    pub(crate) fn for_each(mut self, mut visit: impl FnMut(Pair) -> Result<()>) -> Result<()> {
        while let Some(Reverse((pair, number))) = self.heap.pop() {
            visit(pair)?;
            self.advance(number)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(file: &SpillFile) -> Result<(Vec<Run>, Vec<Pair>)> {
        let pairs = |n: u64| -> Vec<Pair> { (0..2000).map(|i| (i * (n + 1) / 3, i ^ n)).collect() };
        let (mut runs, mut all) = (Vec::new(), Vec::new());
        for number in 0..5 {
            let mut pairs = pairs(number);
            pairs.sort_unstable();
            all.extend_from_slice(&pairs);
            runs.push(match number {
                0 | 3 => Run::Memory(pairs),
                _ => Run::spill(&pairs, file)?,
            });
        }
        all.sort_unstable();
        Ok((runs, all))
    }

    #[test]
    fn merged_runs_are_in_order() -> Result<()> {
        let file = SpillFile::create(&std::env::temp_dir())?;
        let (runs, expected) = runs(&file)?;
        let mut merged = Vec::new();
        Merge::new(runs, Some(&file), 1)?.for_each(|pair| {
            merged.push(pair);
            Ok(())
        })?;
        assert_eq!(merged, expected);
        Ok(())
    }

    #[test]
    fn a_range_has_all_pairs_of_its_numbers() -> Result<()> {
        let file = SpillFile::create(&std::env::temp_dir())?;
        let (runs, all) = runs(&file)?;
        for range in [(0, 0), (5, 5), (0, u64::MAX), (600, 700), (1333, 4000), (9000, 9001)] {
            let mut found = Vec::new();
            for run in &runs {
                run.read_range(range, Some(&file), &mut found)?;
            }
            found.sort_unstable();
            let inside = all.iter().filter(|pair| (range.0..=range.1).contains(&pair.0));
            assert!(inside.eq(&found), "{range:?}");
        }
        Ok(())
    }
}
