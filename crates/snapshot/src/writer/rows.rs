//! All rows of a build, in memory or spilled, sorted and read slice by slice of the key hash.

use super::batch::EncodedRows;
use super::buffer::{Arena, Buffer, Buffers};
use super::duplicates::{self, DuplicatesFound, OnDuplicate};
use super::row::{self, Encoder, RowRef};
use super::scatter::{SLICE_BITS, Scattered};
use super::spill::SpillFile;
use super::spilled::{Group, Limits, SLICES_PER_GROUP, SpilledRows};
use crate::error::Result;
use crate::parallel;
use crate::values::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Target length in bytes of a buffer that holds the kept rows of several slices.
const KEPT_BUFFER_BYTES: usize = 1 << 30;

/// The rows of neighbouring slices of the key hash: sorted by hash, then by key, each key once.
pub(crate) struct Slice<'a> {
    buffers: SliceBuffers<'a>,
    pub(crate) refs: Cow<'a, [RowRef]>,
}

/// The buffers of a slice.
enum SliceBuffers<'a> {
    /// The buffers of all rows, if they are in memory.
    Shared(&'a [Buffer]),
    /// Buffers of this slice, if rows were spilled.
    Owned(Vec<Buffer>),
}

impl Slice<'_> {
    /// Returns the buffers that `refs` refers to.
    pub(crate) fn buffers(&self) -> Buffers<'_> {
        match &self.buffers {
            SliceBuffers::Shared(buffers) => Buffers::of(buffers),
            SliceBuffers::Owned(buffers) => Buffers::of(buffers),
        }
    }
}

/// The rows added so far. Memory is bounded: rows beyond the budget are spilled to a temporary
/// file.
pub(crate) struct Rows {
    arena: Arena,
    /// References to the rows in the arena.
    scattered: Scattered,
    /// Number of rows in the arena.
    in_memory: usize,
    /// Maximum memory of rows and of the references that sort them, in bytes.
    budget: usize,
    threads: usize,
    /// Folder for temporary files.
    folder: PathBuf,
    spilled: Option<SpilledRows>,
    limits: Limits,
    /// The blob file.
    blobs: Arc<SpillFile>,
    count: u64,
    weight: u64,
}

impl Rows {
    pub(crate) fn new(folder: &Path, budget: usize, threads: usize, blobs: Arc<SpillFile>) -> Self {
        Self {
            arena: Arena::default(),
            scattered: Scattered::default(),
            in_memory: 0,
            budget,
            threads,
            folder: folder.to_owned(),
            spilled: None,
            limits: Limits::new(budget, threads),
            blobs,
            count: 0,
            weight: 0,
        }
    }

    /// Returns the number of rows, duplicates included.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the total [weight](super::row::Row::weight) of all rows, duplicates included.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// Adds a row.
    #[inline]
    pub(crate) fn push(
        &mut self,
        encoder: &Encoder,
        position: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<()> {
        let weight = encoder.encode(position, key, value, &mut self.arena)?;
        self.count_added(1, weight)
    }

    /// Adds encoded rows.
    pub(crate) fn add(&mut self, rows: &EncodedRows) -> Result<()> {
        // Rows are copied because few large buffers are faster than many small ones.
        self.arena.allocate(rows.bytes.len()).copy_from_slice(&rows.bytes);
        self.count_added(rows.rows as usize, rows.weight)
    }

    /// Counts and scatters the rows that were added last, and spills all rows if memory exceeds the
    /// budget.
    #[inline]
    fn count_added(&mut self, rows: usize, weight: u64) -> Result<()> {
        self.count += rows as u64;
        self.weight += weight;
        self.in_memory += rows;
        for row in self.arena.last_rows() {
            self.scattered.push(row);
        }
        // The vectors of references have up to twice the length that they need.
        let memory = self.arena.memory() + self.in_memory * 2 * size_of::<RowRef>();
        if memory > self.budget { self.spill() } else { Ok(()) }
    }

    /// Writes all rows in memory to the temporary file.
    fn spill(&mut self) -> Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(SpilledRows::create(&self.folder, self.limits)?),
        };
        let (files, buffers) = ((&spilled.file, &*self.blobs), Buffers::of(self.arena.buffers()));
        let scattered = std::mem::take(&mut self.scattered);
        let groups =
            parallel::map(self.threads, (0..1 << SLICE_BITS).step_by(SLICES_PER_GROUP), |first| {
                Group::write(files, &scattered, buffers, first..first + SLICES_PER_GROUP)
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

    /// Spills the rows in memory and returns all rows.
    #[cfg(test)]
    pub(crate) fn into_spilled(mut self) -> Result<SpilledRows> {
        self.spill()?;
        Ok(self.spilled.expect("rows that were just spilled"))
    }

    /// Sorts all rows by key hash and resolves duplicates, slice by slice.
    ///
    /// Slices are ranges of the top [`SLICE_BITS`] of the hash. Calls `visit` with the kept rows of
    /// each slice, from several threads. Returns the sorted rows and the total weight of the
    /// dropped duplicates.
    pub(crate) fn sort(
        mut self,
        on_duplicate: OnDuplicate,
        visit: impl Fn(Buffers<'_>, &[RowRef]) -> Result<()> + Sync,
    ) -> Result<(Sorted, u64)> {
        if self.spilled.is_some() && !self.arena.is_empty() {
            self.spill()?;
        }
        let Some(rows) = self.spilled else {
            let buffers = self.arena.into_buffers();
            return sort_in_memory(buffers, self.scattered, self.threads, on_duplicate, visit);
        };
        let found = parallel::map(self.threads, 0..1_usize << SLICE_BITS, |slice| {
            let (buffers, refs, found) = rows.read(slice, on_duplicate)?;
            visit(Buffers::of(&buffers), &refs).map(|()| found)
        })?;
        let dropped = duplicates::check(on_duplicate, found)?;
        Ok((Sorted::Spilled { rows, on_duplicate }, dropped))
    }
}

/// Sorts rows that are all in memory, as [`Rows::sort`].
fn sort_in_memory(
    buffers: Vec<Buffer>,
    scattered: Scattered,
    threads: usize,
    on_duplicate: OnDuplicate,
    visit: impl Fn(Buffers<'_>, &[RowRef]) -> Result<()> + Sync,
) -> Result<(Sorted, u64)> {
    let (mut slices, view) = (scattered.into_slices(), Buffers::of(&buffers));
    let found = parallel::map(threads, slices.chunks_mut(SLICES_PER_GROUP), |group| {
        let mut found = DuplicatesFound::default();
        for refs in group.iter_mut().filter(|refs| !refs.is_empty()) {
            found.add(duplicates::sort_and_resolve(refs, view, on_duplicate));
            visit(view, refs)?;
        }
        Ok(found)
    })?;
    let dropped = duplicates::check(on_duplicate, found)?;
    Ok((Sorted::Memory { buffers, slices }, dropped))
}

/// All rows, sorted, with duplicates resolved.
pub(crate) enum Sorted {
    Memory { buffers: Vec<Buffer>, slices: Vec<Vec<RowRef>> },
    Spilled { rows: SpilledRows, on_duplicate: OnDuplicate },
}

impl Sorted {
    /// Returns the rows of neighbouring slices.
    pub(crate) fn slices(&self, range: Range<usize>) -> Result<Slice<'_>> {
        match self {
            Self::Memory { buffers, slices, .. } => {
                let refs = match &slices[range] {
                    [one] => Cow::Borrowed(&one[..]),
                    many => Cow::Owned(many.concat()),
                };
                Ok(Slice { buffers: SliceBuffers::Shared(buffers), refs })
            }
            Self::Spilled { rows, on_duplicate } => read_slices(rows, *on_duplicate, range),
        }
    }

    /// Returns the buffers of all rows, or `None` if rows were spilled.
    pub(crate) fn buffers(&self) -> Option<Buffers<'_>> {
        match self {
            Self::Memory { buffers, .. } => Some(Buffers::of(buffers)),
            Self::Spilled { .. } => None,
        }
    }
}

/// Reads spilled slices one by one, so that dropped duplicates of several slices do not take memory
/// at the same time.
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
            return Ok(Slice { buffers: SliceBuffers::Owned(buffers), refs: Cow::Owned(refs) });
        }
        let mut kept = Vec::new();
        for (number, at) in refs.iter().enumerate() {
            kept.extend_from_slice(Buffers::of(&buffers).bytes(*at));
            if kept.len() >= KEPT_BUFFER_BYTES || number + 1 == refs.len() {
                all_refs.extend(row::refs_of(all.len(), &kept, 0));
                all.push(Buffer::Plain(std::mem::take(&mut kept)));
            }
        }
    }
    Ok(Slice { buffers: SliceBuffers::Owned(all), refs: Cow::Owned(all_refs) })
}
