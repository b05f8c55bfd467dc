//! All rows given so far, in memory or spilled, handed out slice by slice of the key hash.

use super::batch::{Batch, RowRef};
use super::duplicates::{self, OnDuplicate};
use crate::parallel;
use super::row::{self, Row};
use super::spill::SpillFile;
use crate::bucket::prefetch;
use crate::error::Result;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Spilled rows lie by the top 12 bits of their hash.
const SPILL_BITS: u32 = 12;
/// How many slices of a spill are gathered before they are written together.
const GATHER: usize = 64;

/// The buffers that row references point into.
#[derive(Clone, Copy)]
pub(crate) struct Buffers<'a>(&'a [Cow<'a, [u8]>]);

impl<'a> Buffers<'a> {
    #[inline]
    pub(crate) fn row(self, at: RowRef) -> Row<'a> {
        row::read(&self.0[at.buffer()][at.offset()..]).0
    }

    /// Asks for the row's bytes ahead of their use.
    #[inline]
    pub(crate) fn prefetch(self, at: RowRef) {
        prefetch(&self.0[at.buffer()][at.offset()]);
    }
}

/// Rows whose hashes share their top bits: sorted by hash, then key, each key once.
pub(crate) struct Slice<'a> {
    buffers: Cow<'a, [Cow<'a, [u8]>]>,
    pub(crate) refs: Cow<'a, [RowRef]>,
}

impl Slice<'_> {
    pub(crate) fn buffers(&self) -> Buffers<'_> {
        Buffers(&self.buffers)
    }
}

/// Where the slices of one spill lie in the file.
pub(crate) struct Run {
    slices: Vec<Range<u64>>,
}

/// Rows as they arrive. Memory is bounded by spilling.
pub(crate) struct Rows {
    batches: Vec<Batch>,
    memory: usize,
    budget: usize,
    threads: usize,
    directory: PathBuf,
    spill: Option<(SpillFile, Vec<Run>)>,
    count: u64,
}

impl Rows {
    pub(crate) fn new(directory: &Path, budget: usize, threads: usize) -> Self {
        Self {
            batches: Vec::new(),
            memory: 0,
            budget,
            threads,
            directory: directory.to_owned(),
            spill: None,
            count: 0,
        }
    }

    /// Number of rows, duplicates included.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn add(&mut self, batch: Batch) -> Result<()> {
        self.count += batch.len() as u64;
        // Besides what it holds, each row takes one more reference while rows are sorted.
        self.memory += batch.memory() + batch.len() * size_of::<RowRef>();
        self.batches.push(batch);
        if self.memory > self.budget { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<()> {
        if self.spill.is_none() {
            self.spill = Some((SpillFile::create(&self.directory)?, Vec::new()));
        }
        let Some((file, runs)) = &mut self.spill else { return Ok(()) };
        let scattered = scatter(&mut self.batches, SPILL_BITS, self.threads)?;
        let buffers: Vec<_> = self.batches.iter().map(|b| Cow::Borrowed(&b.bytes[..])).collect();
        let slices = parallel::map(self.threads, (0..1 << SPILL_BITS).step_by(GATHER), |first| {
            gather(file, &scattered, &buffers, first..first + GATHER)
        })?;
        runs.push(Run { slices: slices.into_iter().flatten().collect() });
        self.batches.clear();
        self.memory = 0;
        Ok(())
    }

    /// No more rows come: they are sorted into slices of the top `bits` of the hash, or of as many
    /// bits as the spill has, and each slice's final rows are shown to `visit` on some thread.
    pub(crate) fn sort(
        mut self,
        bits: u32,
        on_duplicate: OnDuplicate,
        visit: impl Fn(Buffers<'_>, &[RowRef]) -> Result<()> + Sync,
    ) -> Result<Sorted> {
        if self.spill.is_some() && !self.batches.is_empty() {
            self.spill()?;
        }
        match self.spill {
            Some((file, runs)) => {
                let sorted = Sorted::Spilled { file, runs, on_duplicate };
                let found = parallel::map(self.threads, 0..1_usize << SPILL_BITS, |slice| {
                    let (slice, found) = sorted.read_spilled(slice..slice + 1)?;
                    visit(slice.buffers(), &slice.refs).map(|()| found)
                })?;
                duplicates::refuse(on_duplicate, found)?;
                Ok(sorted)
            }
            None => sort_in_memory(self.batches, self.threads, bits, on_duplicate, visit),
        }
    }
}

/// One thread's rows, scattered by slice.
struct Scattered {
    refs: Vec<RowRef>,
    starts: Vec<usize>,
}

impl Scattered {
    fn slice(&self, slice: usize) -> &[RowRef] {
        &self.refs[self.starts[slice]..self.starts[slice + 1]]
    }
}

/// Each thread takes the references of some neighbouring batches and orders them by slice; within
/// a slice they stay in the order they were given.
fn scatter(batches: &mut [Batch], bits: u32, threads: usize) -> Result<Vec<Scattered>> {
    let group_len = batches.len().div_ceil(threads).max(1);
    let groups = batches.chunks_mut(group_len).enumerate();
    parallel::map(threads, groups, |(group, batches)| {
        let slice_of = |row: &RowRef| ((row.hash >> 1) >> (63 - bits)) as usize;
        let mut starts = vec![0; (1 << bits) + 1];
        for row in batches.iter().flat_map(|batch| &batch.index) {
            starts[slice_of(row) + 1] += 1;
        }
        for slice in 0..1 << bits {
            starts[slice + 1] += starts[slice];
        }
        let mut next = starts.clone();
        let mut refs = vec![RowRef::default(); starts[1 << bits]];
        for (i, batch) in batches.iter_mut().enumerate() {
            for row in std::mem::take(&mut batch.index) {
                let cursor = &mut next[slice_of(&row)];
                refs[*cursor] = RowRef::new(row.hash, group * group_len + i, row.offset());
                *cursor += 1;
            }
        }
        Ok(Scattered { refs, starts })
    })
}

/// Writes the rows of some slices together and tells where each slice lies.
fn gather(
    file: &SpillFile,
    scattered: &[Scattered],
    buffers: &[Cow<'_, [u8]>],
    slices: Range<usize>,
) -> Result<Vec<Range<u64>>> {
    let mut bytes = Vec::new();
    let mut ends = Vec::with_capacity(slices.len());
    for slice in slices {
        for at in scattered.iter().flat_map(|group| group.slice(slice)) {
            let row = &buffers[at.buffer()][at.offset()..];
            bytes.extend_from_slice(&row[..row::read(row).1]);
        }
        ends.push(bytes.len() as u64);
    }
    let base = file.append(&bytes)?;
    let starts = std::iter::once(0).chain(ends.iter().copied());
    Ok(starts.zip(&ends).map(|(start, end)| base + start..base + end).collect())
}

fn sort_in_memory(
    mut batches: Vec<Batch>,
    threads: usize,
    bits: u32,
    on_duplicate: OnDuplicate,
    visit: impl Fn(Buffers<'_>, &[RowRef]) -> Result<()> + Sync,
) -> Result<Sorted> {
    let scattered = scatter(&mut batches, bits, threads)?;
    let buffers: Vec<Cow<'static, [u8]>> =
        batches.into_iter().map(|batch| Cow::Owned(batch.bytes)).collect();
    let sorted = parallel::map(threads, 0..1_usize << bits, |slice| {
        let mut refs: Vec<RowRef> =
            scattered.iter().flat_map(|group| group.slice(slice)).copied().collect();
        let found = duplicates::sort_and_resolve(&mut refs, Buffers(&buffers), on_duplicate);
        visit(Buffers(&buffers), &refs)?;
        Ok((refs, found))
    })?;
    let (slices, found): (Vec<_>, Vec<_>) = sorted.into_iter().unzip();
    duplicates::refuse(on_duplicate, found)?;
    Ok(Sorted::Memory { buffers, slices, bits })
}

/// All rows, sorted, duplicates resolved.
pub(crate) enum Sorted {
    Memory { buffers: Vec<Cow<'static, [u8]>>, slices: Vec<Vec<RowRef>>, bits: u32 },
    Spilled { file: SpillFile, runs: Vec<Run>, on_duplicate: OnDuplicate },
}

impl Sorted {
    /// The rows are in `2^bits` slices.
    pub(crate) fn bits(&self) -> u32 {
        match self {
            Self::Memory { bits, .. } => *bits,
            Self::Spilled { .. } => SPILL_BITS,
        }
    }

    /// The rows of neighbouring slices.
    pub(crate) fn slices(&self, range: Range<usize>) -> Result<Slice<'_>> {
        match self {
            Self::Memory { buffers, slices, .. } => {
                let refs = match &slices[range] {
                    [one] => Cow::Borrowed(&one[..]),
                    many => Cow::Owned(many.concat()),
                };
                Ok(Slice { buffers: Cow::Borrowed(buffers), refs })
            }
            Self::Spilled { .. } => Ok(self.read_spilled(range)?.0),
        }
    }

    /// All rows' buffers, when they are in memory.
    pub(crate) fn buffers(&self) -> Option<Buffers<'_>> {
        match self {
            Self::Memory { buffers, .. } => Some(Buffers(buffers)),
            Self::Spilled { .. } => None,
        }
    }

    fn read_spilled(&self, range: Range<usize>) -> Result<(Slice<'_>, Option<duplicates::Found>)> {
        let Self::Spilled { file, runs, on_duplicate } = self else {
            unreachable!("only spilled rows are read back")
        };
        let mut buffers: Vec<Cow<'_, [u8]>> = Vec::new();
        let mut refs = Vec::new();
        for run in runs {
            for slice in &run.slices[range.clone()] {
                let mut bytes = vec![0; (slice.end - slice.start) as usize];
                file.read_at(&mut bytes, slice.start)?;
                let mut at = 0;
                while at < bytes.len() {
                    let (row, len) = row::read(&bytes[at..]);
                    refs.push(RowRef::new(row.hash.0, buffers.len(), at));
                    at += len;
                }
                buffers.push(Cow::Owned(bytes));
            }
        }
        let found = duplicates::sort_and_resolve(&mut refs, Buffers(&buffers), *on_duplicate);
        Ok((Slice { buffers: Cow::Owned(buffers), refs: Cow::Owned(refs) }, found))
    }
}
