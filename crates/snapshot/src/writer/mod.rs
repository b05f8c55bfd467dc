//! Making a snapshot: rows in any order become one file, within a memory budget.
//!
//! Rows arrive one by one or in batches ([`batch`]), are kept in memory ([`buffer`]) or spilled
//! ([`rows`]), sorted by hash with duplicates resolved ([`duplicates`]) and counted, which gives
//! the index its shape ([`plan`]).
//! Values that occur more than once are found ([`share`]), by sorting ([`pairs`]). Then each
//! partition's rows are placed in lines ([`place`]), turned into bytes ([`emit`]) and written in
//! order ([`commit`]).

mod batch;
mod buffer;
mod commit;
mod compare;
mod duplicates;
mod emit;
mod pairs;
mod place;
mod places;
mod plan;
mod progress;
mod publish;
mod row;
mod rows;
mod share;
mod spill;
mod spilled;
mod temporary;
#[cfg(test)]
mod tests;

pub use batch::Batch;
pub use duplicates::OnDuplicate;
pub use progress::{Progress, Stage};
pub(crate) use publish::NewFile;
pub(crate) use row::Row;
pub(crate) use rows::Sorted;
pub(crate) use spill::SpillFile;

use crate::compression::{Compression, Settings};
use crate::error::Result;
use crate::hash::checksum;
use crate::header::{Header, Section};
use crate::layout::{SECTION_ALIGN, directory, flags, header as header_at, line, record};
use crate::parallel;
use crate::stats::overhead_per_entry;
use crate::value::Value;
use commit::{Commits, Committed, Outcome, Target};
use emit::{Emitter, Image};
use places::Places;
use plan::{Census, Shape};
use progress::Reporter;
use row::Encoder;
use rows::Rows;
use share::{Candidates, HashBits, Role, Shared, sharing_rows};
use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// A build uses no more threads than have this much memory each.
const MIN_MEMORY_PER_THREAD: usize = 4 << 20;

/// How to make a snapshot.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    on_duplicate: OnDuplicate,
    compression: Compression,
    memory: usize,
    threads: usize,
    seed: u64,
    value_hash_bits: HashBits,
    reporter: Reporter,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            on_duplicate: OnDuplicate::default(),
            compression: Compression::default(),
            memory: 1 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            seed: 0,
            value_hash_bits: HashBits::ALL,
            reporter: Reporter::default(),
        }
    }
}

impl WriterOptions {
    /// The defaults: duplicates are errors, no compression, 1 GiB of memory, all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// What to do when a key is given more than once.
    #[must_use]
    pub fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = on_duplicate;
        self
    }

    /// Whether and how values are compressed.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Memory to use, in bytes, at least 16 MiB. Rows beyond it wait in temporary files beside the
    /// result. A single value in the caller's hands does not count.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes.max(16 << 20);
        self
    }

    /// Sets the maximum number of threads; each needs 4 MiB of the memory. The file is the same for
    /// any number, and for any memory.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Seed of the key hash. Another one helps when a build fails because too many keys, chosen for
    /// it, share a hash.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Calls `report` from time to time while the file is made, from any thread.
    #[must_use]
    pub fn progress(mut self, report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.reporter = Reporter::new(report);
        self
    }

    /// Starts a snapshot that will appear at this path once it is whole.
    ///
    /// Until then it is in a file `.NAME.nut.tmp-PID-N` beside the path, which a process that is
    /// killed leaves behind and the next build of that name removes.
    ///
    /// A file at this path is replaced when the snapshot is whole; the new one gets its mode, and
    /// its owner if the process may set it. Where the path is a symbolic link, the file it leads to
    /// is replaced. Fails if there is something else: a folder, a device, a pipe or a socket. The
    /// caller must not give a file that its rows are read from.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Writer> {
        self.start(NewFile::create(path.as_ref())?)
    }

    /// Starts a snapshot in a file without a name, in a folder with room for it and for temporary
    /// files. [`Writer::finish_file`] returns the file.
    pub fn create_unnamed(&self, folder: impl AsRef<Path>) -> Result<Writer> {
        self.start(NewFile::unnamed(folder.as_ref())?)
    }

    fn start(&self, file: NewFile) -> Result<Writer> {
        let threads = self.threads.min(self.memory / MIN_MEMORY_PER_THREAD).max(1);
        let options = Self { threads, ..self.clone() };
        let blobs = Arc::new(SpillFile::create(file.directory())?);
        // Rows get half of the memory: sorting them, and making the file, needs the rest.
        let (budget, blobs_of_rows) = (self.memory / 2, Arc::clone(&blobs));
        let rows = Rows::new(file.directory(), budget, threads, blobs_of_rows);
        let encoder = Encoder::new(self.seed, Arc::clone(&blobs));
        Ok(Writer { options, file, blobs, rows, encoder })
    }
}

/// A snapshot being made.
///
/// ```
/// use nuthatch_snapshot::{Snapshot, Value, Writer};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("users.nut");
/// let mut writer = Writer::create(&path)?;
/// writer.insert(b"user:1.name", Value::String("Ada"))?;
/// writer.insert(b"user:1.age", Value::I64(36))?;
/// writer.finish()?;
///
/// let snapshot = Snapshot::open(&path)?;
/// assert_eq!(snapshot.get_string(b"user:1.name")?.as_deref(), Some("Ada"));
/// assert_eq!(snapshot.get_i64(b"user:2.age")?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer {
    options: WriterOptions,
    file: NewFile,
    blobs: Arc<SpillFile>,
    rows: Rows,
    encoder: Encoder,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.file.path()).finish_non_exhaustive()
    }
}

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of entries.
    pub entries: u64,
    /// Rows given, duplicates included.
    pub rows: u64,
    /// Length of the file in bytes.
    pub file_len: u64,
    /// Sum of the lengths of all keys.
    pub key_bytes: u64,
    /// Sum of the lengths of all values as given.
    pub value_bytes: u64,
    /// Sum of the lengths of all values as stored: compressed, and shared ones once.
    pub stored_value_bytes: u64,
}

impl Summary {
    /// Bytes of the file beyond keys and values as stored, for each entry.
    pub fn overhead_per_entry(&self) -> f64 {
        overhead_per_entry(self.file_len, self.key_bytes + self.stored_value_bytes, self.entries)
    }
}

impl Writer {
    /// Starts a snapshot with the default [`WriterOptions`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        WriterOptions::default().create(path)
    }

    /// Adds a row.
    #[inline]
    pub fn insert(&mut self, key: &[u8], value: Value<'_>) -> Result<()> {
        let origin = self.rows.count();
        self.insert_from(origin, key, value)
    }

    /// Adds a row that came from somewhere, as [`Batch::push_from`].
    #[inline]
    pub fn insert_from(&mut self, origin: u64, key: &[u8], value: Value<'_>) -> Result<()> {
        self.rows.push(&self.encoder, origin, key, value)
    }

    /// An empty batch, for another thread to fill.
    pub fn batch(&self) -> Batch {
        Batch::new(self.encoder.clone())
    }

    /// Adds a batch that was made with [`batch`](Self::batch), after all rows given so far.
    #[expect(clippy::needless_pass_by_value, reason = "a batch is given once")]
    pub fn append(&mut self, batch: Batch) -> Result<()> {
        self.rows.add(&batch)
    }

    /// Makes the file, syncs it and gives it its name, replacing a file of that name.
    ///
    /// Nothing appears under the name when this fails or when the writer is dropped before, with
    /// one exception: after [`Error::NotDurable`](crate::Error::NotDurable) the new file is there,
    /// and only a power failure may undo that.
    pub fn finish(self) -> Result<Summary> {
        let reporter = self.options.reporter.clone();
        let (file, header, summary) = self.write()?;
        reporter.start(Stage::Syncing, 0);
        file.publish(&header.to_bytes(), header.file_len)?;
        Ok(summary)
    }

    /// Makes the file and returns it, with its position at the start. Nothing appears under a name.
    pub fn finish_file(self) -> Result<(Summary, File)> {
        let (file, header, summary) = self.write()?;
        Ok((summary, file.into_file(&header.to_bytes(), header.file_len)?))
    }

    /// Writes everything but the header.
    fn write(self) -> Result<(NewFile, Header, Summary)> {
        let Self { options, file, blobs, rows, .. } = self;
        let (given, weight) = (rows.count(), rows.weight());
        let census = Census::new(given, weight);
        let directory = file.directory().to_owned();
        let candidates = Candidates::new(&directory, options.memory / 8, options.value_hash_bits);
        let steps = options.reporter.start(Stage::Sorting, given);
        let bits = plan::partition_bits(given, weight);
        let (sorted, dropped) = rows.sort(bits, options.on_duplicate, |rows, refs| {
            census.count(refs.iter().map(|row| row.hash));
            steps.advance(refs.len() as u64);
            candidates.add(sharing_rows(refs).map(|row| rows.row(*row)))
        })?;
        let weight = weight - dropped;
        let (entries, shape) = census.shape(weight);
        let shared = candidates.shared(options.threads, options.memory / 8)?;
        let (settings, dictionary) = Settings::train(options.compression, &sorted, &blobs)?;
        let options = &options;
        let build = Build { options, sorted, shape, weight, shared, settings, blobs: &blobs };
        let header = build.write(&file, entries, &dictionary)?;
        let summary = Summary {
            entries,
            rows: given,
            file_len: header.file_len,
            key_bytes: header.key_bytes,
            value_bytes: header.value_bytes,
            stored_value_bytes: header.stored_value_bytes,
        };
        Ok((file, header, summary))
    }
}

/// All that is known once rows are sorted.
struct Build<'a> {
    options: &'a WriterOptions,
    sorted: Sorted,
    shape: Shape,
    weight: u64,
    shared: Shared,
    settings: Settings,
    blobs: &'a SpillFile,
}

impl Build<'_> {
    /// Writes all sections and answers the header.
    fn write(&self, file: &NewFile, entries: u64, dictionary: &[u8]) -> Result<Header> {
        let sections = Sections::new(self.shape, dictionary.len() as u64);
        file.write_at(dictionary, sections.dictionary.offset)?;
        let commits = Commits::new(
            Target {
                file: file.file(),
                path: file.path(),
                index: sections.index,
                data_start: sections.data_start,
                blobs: self.blobs,
                buffers: self.sorted.buffers(),
            },
            Places::new(self.shared.len(), self.options.memory / 4, file.directory())?,
        );
        let steps = self.options.reporter.start(Stage::Writing, entries);
        // A unit is the smallest range of hashes that is whole partitions and whole slices.
        let bits = self.shape.partition_bits.min(self.sorted.bits());
        let units = 0..1_u64 << bits;
        let start = || (None, Image::default(), Vec::new());
        parallel::map_with(self.threads(bits), units, start, |(emitter, image, roles), unit| {
            let guard = FailOnDrop(&commits);
            let emitter = match emitter {
                Some(emitter) => emitter,
                none => none.insert(self.emitter()?),
            };
            self.write_unit(&commits, (bits, unit), (emitter, image, roles), &steps)?;
            std::mem::forget(guard);
            Ok(())
        })?;
        let Committed { data_len, directory, totals } = commits.finish();
        let data_len = (data_len + record::SHORT_MOST as u64).next_multiple_of(SECTION_ALIGN);
        file.write_at(&directory, sections.directory.offset)?;
        let has_dictionary = u32::from(!dictionary.is_empty()) * flags::DICTIONARY;
        let flags = u32::from(totals.shared > 0) * flags::SHARED
            | u32::from(totals.compressed > 0) * flags::ZSTD
            | has_dictionary;
        Ok(Header {
            version_minor: crate::layout::VERSION_MINOR,
            file_len: sections.data_start + data_len,
            seed: self.options.seed,
            entries: totals.entries,
            partition_bits: self.shape.partition_bits,
            lines_per_partition: self.shape.lines_per_partition,
            max_probe: totals.max_probe,
            flags,
            dictionary: sections.dictionary,
            directory: sections.directory,
            index: sections.index,
            data: Section { offset: sections.data_start, len: data_len },
            dictionary_hash: checksum(dictionary),
            directory_hash: checksum(&directory),
            key_bytes: totals.key_bytes,
            value_bytes: totals.value_bytes,
            stored_value_bytes: totals.stored_value_bytes,
            shared_entries: totals.shared,
            compressed_entries: totals.compressed,
            entries_by_type: totals.by_type,
        })
    }

    /// As many threads as the budget has room for: each holds a unit, and what it becomes.
    fn threads(&self, bits: u32) -> usize {
        let rows = (self.weight >> bits).max(1 << 20) as usize;
        self.options.threads.min(self.options.memory / (4 * rows)).max(1)
    }

    fn emitter(&self) -> Result<Emitter<'_>> {
        let compressor = self.settings.compressor(self.blobs)?;
        let keep_frames = self.sorted.buffers().is_none();
        Ok(Emitter::new(self.shape, compressor, self.blobs, keep_frames))
    }

    fn write_unit(
        &self,
        commits: &Commits<'_>,
        (bits, unit): (u32, u64),
        (emitter, image, roles): (&mut Emitter<'_>, &mut Image, &mut Vec<Role>),
        steps: &progress::Steps<'_>,
    ) -> Result<()> {
        emitter.forget_rows();
        let slices_each = 1 << (self.sorted.bits() - bits);
        let first = unit as usize * slices_each;
        let slice = self.sorted.slices(first..first + slices_each)?;
        let partition_bits = self.shape.partition_bits;
        self.shared.roles(&slice.refs, roles)?;
        let (mut rest, mut rest_roles) = (&slice.refs[..], &roles[..]);
        let partitions_each = 1 << (partition_bits - bits);
        for partition in unit * partitions_each..(unit + 1) * partitions_each {
            let partition_of = |hash: u64| (hash >> 1) >> (63 - partition_bits);
            let len = rest.partition_point(|row| partition_of(row.hash) <= partition);
            let refs = rest.split_off(..len).unwrap_or_default();
            let roles = rest_roles.split_off(..len.min(rest_roles.len())).unwrap_or_default();
            let mut alone = HashSet::new();
            loop {
                emitter.write(image, slice.buffers(), (refs, roles), &alone)?;
                match commits.commit(partition, image, slice.buffers())? {
                    Outcome::Done => break,
                    Outcome::Differ(rows) => alone.extend(rows),
                }
            }
            steps.advance(len as u64);
        }
        Ok(())
    }
}

/// Unless forgotten, lets the threads go that wait for this one's partitions.
struct FailOnDrop<'a>(&'a Commits<'a>);

impl Drop for FailOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}

/// Where the sections lie. All but the length of the data is known before the data is.
struct Sections {
    dictionary: Section,
    directory: Section,
    index: Section,
    data_start: u64,
}

impl Sections {
    fn new(shape: Shape, dictionary_len: u64) -> Self {
        let mut next = header_at::LEN as u64;
        let mut section = |len: u64| {
            let offset = next;
            next = (offset + len).next_multiple_of(SECTION_ALIGN);
            Section { offset, len }
        };
        let partitions = 1 << shape.partition_bits;
        let lines = partitions * u64::from(shape.lines_per_partition);
        let dictionary = section(dictionary_len);
        let directory = section(partitions * directory::ENTRY_LEN as u64);
        let index = section(lines * line::LEN as u64);
        Self { dictionary, directory, index, data_start: section(0).offset }
    }
}
