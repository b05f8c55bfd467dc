//! All rows given so far, in memory or spilled, handed out slice by slice of the key hash.

use super::batch::Batch;
use super::buffer::{Arena, Buffer, Room};
use super::duplicates::{self, OnDuplicate};
use super::row::{self, Encoder, Row, RowRef};
use super::spill::SpillFile;
use super::spilled::{GATHER, Group, Limits, SPILL_BITS, SpilledRows};
use crate::bucket::prefetch;
use crate::error::Result;
use crate::parallel;
use crate::value::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are kept of several slices are copied into buffers of about this length.
const KEPT_BYTES: usize = 1 << 30;

/// The buffers that row references point into.
#[derive(Clone, Copy)]
pub(crate) struct Buffers<'a>(&'a [Buffer]);

impl<'a> Buffers<'a> {
    pub(crate) fn of(buffers: &'a [Buffer]) -> Self {
        Self(buffers)
    }

    /// Returns the bytes of a row as they lie in its buffer.
    pub(crate) fn bytes(self, at: RowRef) -> &'a [u8] {
        row::bytes_at(&self.0[at.buffer()], at.offset())
    }

    #[inline]
    pub(crate) fn row(self, at: RowRef) -> Row<'a> {
        row::read(&self.0[at.buffer()][at.offset()..])
    }

    /// Asks for the row's bytes ahead of their use.
    #[inline]
    pub(crate) fn prefetch(self, at: RowRef) {
        let row = &self.0[at.buffer()][at.offset()..];
        prefetch(&row[0]);
        // Most rows reach into the next cache line.
        if let Some(byte) = row.get(64) {
            prefetch(byte);
        }
    }
}

/// Rows whose hashes share their top bits: sorted by hash, then key, each key once.
pub(crate) struct Slice<'a> {
    buffers: Held<'a>,
    pub(crate) refs: Cow<'a, [RowRef]>,
}

enum Held<'a> {
    All(&'a [Buffer]),
    Own(Vec<Buffer>),
}

impl Slice<'_> {
    pub(crate) fn buffers(&self) -> Buffers<'_> {
        match &self.buffers {
            Held::All(buffers) => Buffers(buffers),
            Held::Own(buffers) => Buffers(buffers),
        }
    }
}

/// Rows as they arrive. Memory is bounded by spilling.
pub(crate) struct Rows {
    arena: Arena,
    /// Rows in the arena.
    in_memory: usize,
    budget: usize,
    threads: usize,
    directory: PathBuf,
    spilled: Option<SpilledRows>,
    limits: Limits,
    /// Where values are set aside.
    blobs: Arc<SpillFile>,
    count: u64,
    weight: u64,
}

impl Rows {
    pub(crate) fn new(
        directory: &Path,
        budget: usize,
        threads: usize,
        blobs: Arc<SpillFile>,
    ) -> Self {
        Self {
            arena: Arena::default(),
            in_memory: 0,
            budget,
            threads,
            directory: directory.to_owned(),
            spilled: None,
            limits: Limits::new(budget, threads),
            blobs,
            count: 0,
            weight: 0,
        }
    }

    /// Number of rows, duplicates included.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// What all rows weigh, duplicates included.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    #[inline]
    pub(crate) fn push(
        &mut self,
        encoder: &Encoder,
        origin: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<()> {
        let weight = encoder.encode(origin, key, value, &mut self.arena)?;
        self.added(1, weight)
    }

    pub(crate) fn add(&mut self, batch: &Batch) -> Result<()> {
        // Few large buffers are better than many small ones; copying costs less than parsing.
        self.arena.room(batch.bytes().len()).copy_from_slice(batch.bytes());
        self.added(batch.len(), batch.weight())
    }

    #[inline]
    fn added(&mut self, rows: usize, weight: u64) -> Result<()> {
        self.count += rows as u64;
        self.weight += weight;
        self.in_memory += rows;
        // Besides the rows, memory takes two references to each while they are sorted.
        let memory = self.arena.memory() + self.in_memory * 2 * size_of::<RowRef>();
        if memory > self.budget { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(SpilledRows::create(&self.directory, self.limits)?),
        };
        let (files, buffers) = ((&spilled.file, &*self.blobs), self.arena.buffers());
        let scattered = scatter(buffers, SPILL_BITS, self.threads)?;
        let groups = parallel::map(self.threads, (0..1 << SPILL_BITS).step_by(GATHER), |first| {
            Group::write(files, &scattered, Buffers(buffers), first..first + GATHER)
        })?;
        spilled.runs.push(groups);
        self.arena = Arena::default();
        self.in_memory = 0;
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Spills what is in memory and returns all rows.
    #[cfg(test)]
    pub(crate) fn into_spilled(mut self) -> Result<SpilledRows> {
        self.spill()?;
        Ok(self.spilled.expect("rows that were just spilled"))
    }

    /// No more rows come: they are sorted into slices of the top `bits` of the hash, or of as many
    /// bits as the spill has, and each slice's final rows are shown to `visit` on some thread.
    /// Answers also what the rows weigh that do not count.
    pub(crate) fn sort(
        mut self,
        bits: u32,
        on_duplicate: OnDuplicate,
        visit: impl Fn(Buffers<'_>, &[RowRef]) -> Result<()> + Sync,
    ) -> Result<(Sorted, u64)> {
        if self.spilled.is_some() && !self.arena.is_empty() {
            self.spill()?;
        }
        match self.spilled {
            Some(rows) => {
                let found = parallel::map(self.threads, 0..1_usize << SPILL_BITS, |slice| {
                    let (buffers, refs, found) = rows.read(slice, on_duplicate)?;
                    visit(Buffers(&buffers), &refs).map(|()| found)
                })?;
                let dropped = duplicates::refuse(on_duplicate, found)?;
                Ok((Sorted::Spilled { rows, on_duplicate }, dropped))
            }
            None => sort_in_memory(self.arena, self.threads, bits, on_duplicate, visit),
        }
    }
}

/// One thread's rows, scattered by slice.
pub(crate) struct Scattered {
    refs: Vec<RowRef>,
    starts: Vec<usize>,
}

impl Scattered {
    pub(crate) fn slice(&self, slice: usize) -> &[RowRef] {
        &self.refs[self.starts[slice]..self.starts[slice + 1]]
    }
}

/// Each thread takes some neighbouring buffers and orders their rows by slice; within a slice they
/// stay in the order they were given.
fn scatter(buffers: &[Buffer], bits: u32, threads: usize) -> Result<Vec<Scattered>> {
    let group_len = buffers.len().div_ceil(threads).max(1);
    let groups = buffers.chunks(group_len).enumerate();
    parallel::map(threads, groups, |(group, buffers)| {
        let slice_of = |row: &RowRef| ((row.hash >> 1) >> (63 - bits)) as usize;
        let rows = || {
            let numbered = buffers.iter().enumerate();
            numbered.flat_map(move |(i, buffer)| row::refs_of(group * group_len + i, buffer))
        };
        let mut starts = vec![0; (1 << bits) + 1];
        for row in rows() {
            starts[slice_of(&row) + 1] += 1;
        }
        for slice in 0..1 << bits {
            starts[slice + 1] += starts[slice];
        }
        let mut next = starts.clone();
        let mut refs = vec![RowRef::default(); starts[1 << bits]];
        for row in rows() {
            let cursor = &mut next[slice_of(&row)];
            refs[*cursor] = row;
            *cursor += 1;
        }
        Ok(Scattered { refs, starts })
    })
}

fn sort_in_memory(
    arena: Arena,
    threads: usize,
    bits: u32,
    on_duplicate: OnDuplicate,
    visit: impl Fn(Buffers<'_>, &[RowRef]) -> Result<()> + Sync,
) -> Result<(Sorted, u64)> {
    let buffers = arena.into_buffers();
    let scattered = scatter(&buffers, bits, threads)?;
    let sorted = parallel::map(threads, 0..1_usize << bits, |slice| {
        let mut refs: Vec<RowRef> =
            scattered.iter().flat_map(|group| group.slice(slice)).copied().collect();
        let found = duplicates::sort_and_resolve(&mut refs, Buffers(&buffers), on_duplicate);
        visit(Buffers(&buffers), &refs)?;
        Ok((refs, found))
    })?;
    let (slices, found): (Vec<_>, Vec<_>) = sorted.into_iter().unzip();
    let dropped = duplicates::refuse(on_duplicate, found)?;
    Ok((Sorted::Memory { buffers, slices, bits }, dropped))
}

/// All rows, sorted, duplicates resolved.
pub(crate) enum Sorted {
    Memory { buffers: Vec<Buffer>, slices: Vec<Vec<RowRef>>, bits: u32 },
    Spilled { rows: SpilledRows, on_duplicate: OnDuplicate },
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
                Ok(Slice { buffers: Held::All(buffers), refs })
            }
            Self::Spilled { rows, on_duplicate } => read_slices(rows, *on_duplicate, range),
        }
    }

    /// All rows' buffers, when they are in memory.
    pub(crate) fn buffers(&self) -> Option<Buffers<'_>> {
        match self {
            Self::Memory { buffers, .. } => Some(Buffers(buffers)),
            Self::Spilled { .. } => None,
        }
    }
}

/// Reads spilled slices one by one, so that rows that are not kept take no memory.
fn read_slices(
    rows: &SpilledRows,
    on_duplicate: OnDuplicate,
    range: Range<usize>,
) -> Result<Slice<'static>> {
    let is_one = range.len() == 1;
    let (mut all, mut all_refs) = (Vec::new(), Vec::new());
    for slice in range {
        let (buffers, refs, _) = rows.read(slice, on_duplicate)?;
        if is_one {
            return Ok(Slice { buffers: Held::Own(buffers), refs: Cow::Owned(refs) });
        }
        let mut kept = Vec::new();
        for (number, at) in refs.iter().enumerate() {
            kept.extend_from_slice(Buffers(&buffers).bytes(*at));
            if kept.len() >= KEPT_BYTES || number + 1 == refs.len() {
                all_refs.extend(row::refs_of(all.len(), &kept));
                all.push(Buffer::Plain(std::mem::take(&mut kept)));
            }
        }
    }
    Ok(Slice { buffers: Held::Own(all), refs: Cow::Owned(all_refs) })
}
