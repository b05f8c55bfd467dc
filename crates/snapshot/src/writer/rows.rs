//! All rows given so far, in memory or spilled, handed out slice by slice of the key hash.

use super::batch::Batch;
use super::buffer::{Arena, Buffer, Room};
use super::duplicates::{self, OnDuplicate};
use super::row::{self, Encoder, Payload, Row, RowRef, SET_ASIDE_MIN};
use super::spill::SpillFile;
use crate::bucket::prefetch;
use crate::error::Result;
use crate::parallel;
use crate::value::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Spilled rows lie by the top 12 bits of their hash.
const SPILL_BITS: u32 = 12;
/// How many slices of a spill are gathered before they are written together.
const GATHER: usize = 64;

/// The buffers that row references point into.
#[derive(Clone, Copy)]
pub(crate) struct Buffers<'a>(&'a [Buffer]);

impl<'a> Buffers<'a> {
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

/// Where the slices of one spill lie in the file: for each group that was written together, where
/// its first slice begins, and where each ends.
pub(crate) struct Run(Vec<Vec<u64>>);

impl Run {
    fn slice(&self, slice: usize) -> Range<u64> {
        let (group, slice) = (&self.0[slice / GATHER], slice % GATHER);
        group[slice]..group[slice + 1]
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
    spill: Option<(SpillFile, Vec<Run>)>,
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
            spill: None,
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
        if self.spill.is_none() {
            self.spill = Some((SpillFile::create(&self.directory)?, Vec::new()));
        }
        let Some((file, runs)) = &mut self.spill else { return Ok(()) };
        let buffers = self.arena.buffers();
        let scattered = scatter(buffers, SPILL_BITS, self.threads)?;
        let groups = parallel::map(self.threads, (0..1 << SPILL_BITS).step_by(GATHER), |first| {
            gather((file, &self.blobs), &scattered, buffers, first..first + GATHER)
        })?;
        runs.push(Run(groups));
        self.arena = Arena::default();
        self.in_memory = 0;
        Ok(())
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
        if self.spill.is_some() && !self.arena.is_empty() {
            self.spill()?;
        }
        match self.spill {
            Some((file, runs)) => {
                let sorted = Sorted::Spilled { file, runs, on_duplicate };
                let found = parallel::map(self.threads, 0..1_usize << SPILL_BITS, |slice| {
                    let (buffer, refs, found) = sorted.read_spilled(slice)?;
                    visit(Buffers(std::slice::from_ref(&buffer)), &refs).map(|()| found)
                })?;
                Ok((sorted, duplicates::refuse(on_duplicate, found)?))
            }
            None => sort_in_memory(self.arena, self.threads, bits, on_duplicate, visit),
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

/// Writes the rows of some slices together and tells where the first begins, and where each ends.
/// Long values go to the file of blobs.
fn gather(
    (file, blobs): (&SpillFile, &SpillFile),
    scattered: &[Scattered],
    buffers: &[Buffer],
    slices: Range<usize>,
) -> Result<Vec<u64>> {
    let mut bytes = Vec::new();
    let mut fences = Vec::with_capacity(slices.len() + 1);
    fences.push(0);
    for slice in slices {
        for at in scattered.iter().flat_map(|group| group.slice(slice)) {
            let row = Buffers(buffers).row(*at);
            match row.payload {
                Payload::Bytes(value) if value.len() >= SET_ASIDE_MIN => {
                    let (place, value) = ((row.hash, row.origin), (row.value_type, value));
                    row::write_set_aside(&mut bytes, place, row.key, value, blobs)?;
                }
                _ => bytes.extend_from_slice(row::bytes_at(&buffers[at.buffer()], at.offset())),
            }
        }
        fences.push(bytes.len() as u64);
    }
    let base = file.append(&bytes)?;
    for fence in &mut fences {
        *fence += base;
    }
    Ok(fences)
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
                Ok(Slice { buffers: Held::All(buffers), refs })
            }
            Self::Spilled { .. } => self.read_slices(range),
        }
    }

    /// All rows' buffers, when they are in memory.
    pub(crate) fn buffers(&self) -> Option<Buffers<'_>> {
        match self {
            Self::Memory { buffers, .. } => Some(Buffers(buffers)),
            Self::Spilled { .. } => None,
        }
    }

    /// Reads spilled slices one by one, so that rows that do not count take no memory.
    fn read_slices(&self, range: Range<usize>) -> Result<Slice<'_>> {
        if range.len() == 1 {
            let (buffer, refs, _) = self.read_spilled(range.start)?;
            return Ok(Slice { buffers: Held::Own(vec![buffer]), refs: Cow::Owned(refs) });
        }
        let (mut buffers, mut all) = (Vec::new(), Vec::new());
        for slice in range {
            let (buffer, refs, _) = self.read_spilled(slice)?;
            let mut kept = Vec::new();
            for at in &refs {
                kept.extend_from_slice(row::bytes_at(&buffer, at.offset()));
            }
            all.extend(row::refs_of(buffers.len(), &kept));
            buffers.push(Buffer::Plain(kept));
        }
        Ok(Slice { buffers: Held::Own(buffers), refs: Cow::Owned(all) })
    }

    /// The rows of a spilled slice as they were given, which of them count, in order, and what was
    /// found of duplicates.
    fn read_spilled(&self, slice: usize) -> Result<(Buffer, Vec<RowRef>, duplicates::Found)> {
        let Self::Spilled { file, runs, on_duplicate } = self else {
            unreachable!("only spilled rows are read back")
        };
        let mut bytes = Vec::new();
        for run in runs {
            let (Range { start, end }, from) = (run.slice(slice), bytes.len());
            bytes.resize(from + (end - start) as usize, 0);
            file.read_at(&mut bytes[from..], start)?;
        }
        let mut refs = row::refs_of(0, &bytes).collect();
        let buffer = Buffer::Plain(bytes);
        let buffers = std::slice::from_ref(&buffer);
        let found = duplicates::sort_and_resolve(&mut refs, Buffers(buffers), *on_duplicate);
        Ok((buffer, refs, found))
    }
}
