//! Building of a file from rows in any order, within a memory budget.
//!
//! A build has these steps, in this order:
//!
//! 1. Rows are added one by one or in batches ([`batch`]) and encoded ([`row`]). They are kept in
//!    memory ([`buffer`]) or spilled ([`spilled`]); [`rows`] has both.
//! 2. Rows are sorted by hash and duplicates resolved ([`duplicates`]). The number of rows that are
//!    kept determines the shape of the index ([`plan`]).
//! 3. Values that occur more than once are found ([`share`]) by an external sort ([`pairs`]), and a
//!    dictionary is trained ([`compress`]).
//! 4. For each partition, rows are placed in index lines ([`placement`]), encoded as lines and
//!    records ([`emit`]), and written in order ([`commit`]). [`build`] runs this on several
//!    threads, while the parts that are written are synced ([`writeback`]).
//! 5. The file is published ([`publish`]).

mod batch;
mod buffer;
mod build;
mod commit;
mod compare;
mod compress;
mod duplicates;
mod emit;
mod locations;
mod options;
mod pairs;
mod placement;
mod plan;
mod progress;
mod publish;
mod row;
mod rows;
mod scatter;
mod separate;
mod set;
mod shard_files;
mod shard_rows;
mod shards_lock;
mod share;
mod spill;
mod spilled;
mod staged;
mod temporary;
#[cfg(test)]
mod tests;
mod writeback;

pub use batch::Batch;
pub use duplicates::OnDuplicate;
pub use options::{Compression, WriterOptions};
pub use progress::{Progress, Stage};
pub(crate) use publish::NewFile;
pub use separate::BuiltShard;
pub(crate) use shard_files::remove;
pub use staged::Staged;

use crate::error::{Error, Result};
use crate::format::header::{Header, Shard, overhead_per_entry};
use crate::format::layout::limits;
use crate::format::metadata::MetadataBuilder;
use crate::values::Value;
use build::Build;
use compress::Settings;
use plan::HashHistogram;
use row::Encoder;
use rows::Rows;
use shard_rows::ShardRows;
use share::{Candidates, sharing_rows};
use spill::SpillFile;
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A builder of a snapshot. It takes rows in any order and writes one file, or a set of files.
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
    rows: AddedRows,
    encoder: Encoder,
    metadata: MetadataBuilder,
}

/// The rows added so far.
enum AddedRows {
    /// Those of one file.
    File(Rows),
    /// Those of a set of shards.
    Set(ShardRows),
}

impl AddedRows {
    fn count(&self) -> u64 {
        match self {
            Self::File(rows) => rows.count(),
            Self::Set(rows) => rows.count(),
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.file.path()).finish_non_exhaustive()
    }
}

/// The result of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of entries.
    pub entries: u64,
    /// Number of rows that were added, duplicates included.
    pub rows: u64,
    /// Length of the file in bytes; for a set, of all shards without the manifest.
    pub file_len: u64,
    /// Sum of the lengths of all keys in bytes.
    pub key_bytes: u64,
    /// Sum of the lengths of all values in bytes, uncompressed.
    pub value_bytes: u64,
    /// Sum of the lengths of all stored values in bytes. A shared value counts once.
    pub stored_value_bytes: u64,
}

impl Summary {
    /// Returns the number of bytes per entry that the file takes beyond keys and stored values; 0
    /// for a file without entries.
    pub fn overhead_per_entry(&self) -> f64 {
        overhead_per_entry(self.file_len, self.key_bytes + self.stored_value_bytes, self.entries)
    }

    /// Adds the counts of another file.
    fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.rows += other.rows;
        self.file_len += other.file_len;
        self.key_bytes += other.key_bytes;
        self.value_bytes += other.value_bytes;
        self.stored_value_bytes += other.stored_value_bytes;
    }
}

impl Writer {
    /// Starts a snapshot with the default [`WriterOptions`].
    ///
    /// # Errors
    /// Returns the same errors as [`WriterOptions::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        WriterOptions::default().create(path)
    }

    /// Adds a row. Its position is the number of rows added before.
    ///
    /// # Errors
    /// Returns the same errors as [`insert_with_position`](Self::insert_with_position).
    #[inline]
    pub fn insert(&mut self, key: &[u8], value: Value<'_>) -> Result<()> {
        let position = self.rows.count();
        self.insert_with_position(position, key, value)
    }

    /// Adds a row with its position in the input, such as a line number. The error about a
    /// duplicate key reports positions.
    ///
    /// # Errors
    /// Returns [`Error::Limit`](crate::Error::Limit) if the key or the value is too long, and
    /// [`Error::Io`](crate::Error::Io) if rows cannot be spilled to a temporary file.
    #[inline]
    pub fn insert_with_position(
        &mut self,
        position: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<()> {
        match &mut self.rows {
            AddedRows::File(rows) => rows.push(&self.encoder, position, key, value),
            AddedRows::Set(rows) => rows.push(&self.encoder, position, key, value),
        }
    }

    /// Sets a value of the metadata, which readers get by its name
    /// ([`Snapshot::metadata`](crate::Snapshot::metadata)). Replaces an earlier value of that name.
    ///
    /// ```
    /// # use nuthatch_snapshot::{Snapshot, Writer};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("users.nut");
    /// let mut writer = Writer::create(&path)?;
    /// writer.set_metadata("source", b"users of 2026-11-23")?;
    /// writer.finish()?;
    /// let snapshot = Snapshot::open(&path)?;
    /// assert_eq!(snapshot.metadata()?.get("source"), Some(&b"users of 2026-11-23"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Limit`] if the name has no byte or more than 255, or if all metadata would
    /// take more than 1 MiB.
    pub fn set_metadata(&mut self, name: &str, value: &[u8]) -> Result<()> {
        self.metadata.set(name, value)
    }

    /// Returns an empty batch for another thread to fill.
    pub fn batch(&self) -> Batch {
        Batch::new(self.encoder.clone(), self.options.shards)
    }

    /// Adds the rows of a batch from [`batch`](Self::batch), after all rows that were added before.
    ///
    /// # Errors
    /// Returns [`Error::Io`](crate::Error::Io) if rows cannot be spilled to a temporary file.
    ///
    /// # Panics
    /// Panics if the batch is from another writer.
    #[expect(clippy::needless_pass_by_value, reason = "a batch is appended once")]
    pub fn append(&mut self, batch: Batch) -> Result<()> {
        assert!(batch.is_from(&self.encoder), "the batch is from another writer");
        match &mut self.rows {
            AddedRows::File(rows) => batch.shards().iter().try_for_each(|shard| rows.add(shard)),
            AddedRows::Set(rows) => {
                let mut shards = batch.shards().iter().enumerate();
                shards.try_for_each(|(number, shard)| rows.add(number, shard))
            }
        }
    }

    /// Writes the file, syncs it and publishes it at its path. Replaces a file or a set at that
    /// path: then removes the shards of the old set that no manifest in the folder refers to. For a
    /// set, publishes the shards before the manifest.
    ///
    /// If this fails, or if the writer is dropped without it, the path is unchanged, with one
    /// exception: after [`Error::NotDurable`](crate::Error::NotDurable) the new file is published,
    /// but a power failure may restore the old one.
    ///
    /// # Errors
    /// Returns [`Error::Duplicate`](crate::Error::Duplicate) if duplicates are errors and a key has
    /// several rows, [`Error::Limit`](crate::Error::Limit) if the file would be too long or too
    /// many keys have the same hash, [`Error::Io`](crate::Error::Io) or `NotDurable`.
    pub fn finish(self) -> Result<Summary> {
        self.stage()?.publish()
    }

    /// Writes and syncs the file, and does not publish it, so that it can be checked before:
    /// [`Staged::path`] is its temporary path, and [`Staged::publish`] publishes it. Of a set, the
    /// shards are at their paths, to which no manifest refers yet.
    ///
    /// # Errors
    /// Returns the same errors as [`finish`](Self::finish), except for `NotDurable`.
    pub fn stage(self) -> Result<Staged> {
        let Self { options, file, blobs, rows, metadata, .. } = self;
        match rows {
            AddedRows::File(rows) => {
                let (header, summary) =
                    write_file(&options, &file, &blobs, rows, (&metadata, options.place))?;
                options.reporter.start(Stage::Syncing, 0);
                file.stage(&header.to_bytes(), header.file_len)?;
                let replaced = shard_files::Replaced::at(file.path());
                Ok(Staged { lock: None, file, replaced, new: None, summary })
            }
            AddedRows::Set(rows) => set::stage(&options, file, &blobs, rows, &metadata),
        }
    }

    /// Writes the file and returns it, positioned at its start. Neither syncs nor publishes it: the
    /// file has no name, and is removed when its last descriptor is closed.
    ///
    /// # Errors
    /// Returns the same errors as [`finish`](Self::finish), except for `NotDurable`, and
    /// [`Error::Io`](crate::Error::Io) for a set, which is several files.
    pub fn finish_file(self) -> Result<(Summary, File)> {
        let Self { options, file, blobs, rows, metadata, .. } = self;
        let AddedRows::File(rows) = rows else {
            return Err(Error::io(
                file.path(),
                "write a set to one file",
                ErrorKind::InvalidInput.into(),
            ));
        };
        let (header, summary) =
            write_file(&options, &file, &blobs, rows, (&metadata, options.place))?;
        Ok((summary, file.into_file(&header.to_bytes(), header.file_len)?))
    }
}

/// Writes a file without its header. Returns the header.
fn write_file(
    options: &WriterOptions,
    file: &NewFile,
    blobs: &SpillFile,
    rows: Rows,
    (metadata, place): (&MetadataBuilder, Option<Shard>),
) -> Result<(Header, Summary)> {
    let (row_count, weight) = (rows.count(), rows.weight());
    let histogram = HashHistogram::new(row_count, weight);
    let folder = file.folder().to_owned();
    let candidates = Candidates::new(&folder, options.memory / 8, options.value_hash_bits);
    let progress = options.reporter.start(Stage::Sorting, row_count);
    let (sorted, dropped) = rows.sort(options.on_duplicate, |rows, refs| {
        histogram.count(refs.iter().map(|row| row.hash));
        progress.advance(refs.len() as u64);
        candidates.add(sharing_rows(refs).map(|row| rows.row(*row)))
    })?;
    let weight = weight - dropped;
    let (entries, shape) = histogram.shape(weight);
    let shared = candidates.shared(options.threads, options.memory / 8)?;
    let (settings, dictionary) = Settings::train(options.compression, &sorted, blobs)?;
    let build = Build { options, sorted, shape, weight, shared, settings, metadata, place, blobs };
    let header = build.write(file, entries, &dictionary)?;
    let summary = Summary {
        entries,
        rows: row_count,
        file_len: header.file_len,
        key_bytes: header.key_bytes,
        value_bytes: header.value_bytes,
        stored_value_bytes: header.stored_value_bytes,
    };
    Ok((header, summary))
}

impl WriterOptions {
    /// Starts a snapshot that will be published at this path when it is complete.
    ///
    /// Until then, its bytes are in a temporary file `.NAME.nut.tmp-PID-N` in the same folder. If
    /// the process is killed, the file remains, and the next build of that name removes it.
    ///
    /// A file at the path is replaced when the snapshot is complete. The new file gets the mode of
    /// the old one, and its owner if the process is permitted to set it. If the path is a symbolic
    /// link, the file that it points to is replaced. Do not use the path of a file that the rows
    /// are read from.
    ///
    /// # Errors
    /// Returns [`Error::Io`](crate::Error::Io) if the path names a folder, a device, a pipe or a
    /// socket, or if a temporary file cannot be created, and [`Error::Limit`] for more than 65,536
    /// shards, or more than the memory budget suffices for.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Writer> {
        self.start(NewFile::create(path.as_ref())?)
    }

    /// Returns the folder in which a build of the file at a path has its temporary files: that of
    /// the file, or of its target if it is a symbolic link.
    ///
    /// # Errors
    /// Returns [`Error::Io`](crate::Error::Io) if there are too many symbolic links.
    pub fn folder_of(path: impl AsRef<Path>) -> Result<PathBuf> {
        publish::real_folder(path.as_ref())
    }

    /// Starts a snapshot in a file without a name. The file and temporary files take disk space in
    /// `folder`. [`Writer::finish_file`] returns the file; it fails for a set.
    ///
    /// # Errors
    /// Returns [`Error::Io`](crate::Error::Io) if a temporary file cannot be created.
    pub fn create_unnamed(&self, folder: impl AsRef<Path>) -> Result<Writer> {
        self.start(NewFile::unnamed(folder.as_ref())?)
    }

    fn start(&self, file: NewFile) -> Result<Writer> {
        let max = limits::MAX_SHARDS;
        if self.shards > max {
            return Err(Error::limit("shards", u64::from(max), u64::from(self.shards)));
        }
        let threads = self.affordable_threads();
        let options = Self { threads, ..self.clone() };
        let blobs = Arc::new(SpillFile::create(file.folder())?);
        let rows = if self.shards > 0 {
            AddedRows::Set(ShardRows::new(file.folder(), self.shards, self.memory)?)
        } else {
            // Rows take half of the memory. Sorting them and writing the file takes the rest.
            let blobs = Arc::clone(&blobs);
            AddedRows::File(Rows::new(file.folder(), self.memory / 2, threads, blobs))
        };
        let encoder = Encoder::new(self.seed, Arc::clone(&blobs));
        let metadata = MetadataBuilder::default();
        Ok(Writer { options, file, blobs, rows, encoder, metadata })
    }
}
