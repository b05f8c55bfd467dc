//! Writing of a set: its shards, then its manifest.

use super::options::WriterOptions;
use super::progress::{Reporter, Stage};
use super::publish::NewFile;
use super::rows::Rows;
use super::shard_files::{NewShards, Replaced};
use super::shard_rows::ShardRows;
use super::shards_lock::ShardsLock;
use super::spill::SpillFile;
use super::staged::Staged;
use super::{Summary, write_file};
use crate::error::Result;
use crate::format::header::Shard;
use crate::format::layout::VERSION_MINOR;
use crate::format::manifest::{Manifest, ShardEntry};
use crate::format::metadata::MetadataBuilder;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Writes the shards of a set, publishes them, and stages the manifest.
pub(super) fn stage(
    options: &WriterOptions,
    file: NewFile,
    blobs: &Arc<SpillFile>,
    mut rows: ShardRows,
    metadata: &MetadataBuilder,
) -> Result<Staged> {
    let replaced = Replaced::at(file.path());
    let mut new = NewShards { manifest: file.path().to_owned(), paths: HashSet::new() };
    // Dropped before the new shards, if this fails.
    let lock = ShardsLock::share(file.folder());
    let (all, of) = (rows.count(), rows.shards());
    let (mut entries, mut sum, mut done) = (Vec::new(), Summary::default(), 0);
    for number in 0..of {
        let mut rows_of_shard = rows_of_shard(options, &file, blobs);
        let count = rows.take(number, &mut rows_of_shard)?;
        let reporter = options.reporter.of_part(done, all);
        let options = WriterOptions { reporter, ..options.clone() };
        let written = write_shard(&options, &file, blobs, rows_of_shard, Shard { number, of })?;
        if written.is_new {
            new.paths.insert(written.path);
        }
        entries.push(written.entry);
        done += count;
        sum.add(&written.summary);
    }
    stage_manifest(options, file, (entries, metadata), (replaced, new, lock), sum)
}

/// A shard that was written and published.
pub(super) struct WrittenShard {
    pub(super) entry: ShardEntry,
    pub(super) path: PathBuf,
    /// Whether the same file was not there before.
    pub(super) is_new: bool,
    pub(super) summary: Summary,
}

/// Returns an empty container for the rows of a shard.
pub(super) fn rows_of_shard(
    options: &WriterOptions,
    file: &NewFile,
    blobs: &Arc<SpillFile>,
) -> Rows {
    Rows::new(file.folder(), options.memory / 2, options.threads, Arc::clone(blobs))
}

/// Writes a shard and publishes it beside the manifest, unless the same file is there. Does not
/// sync the folder.
pub(super) fn write_shard(
    options: &WriterOptions,
    file: &NewFile,
    blobs: &Arc<SpillFile>,
    rows: Rows,
    shard: Shard,
) -> Result<WrittenShard> {
    let mut shard_file = file.sibling()?;
    let no_metadata = MetadataBuilder::default();
    let (header, summary) =
        write_file(options, &shard_file, blobs, rows, (&no_metadata, Some(shard)))?;
    let bytes = header.to_bytes();
    let entry = ShardEntry::of(&header, &bytes);
    shard_file.set_name(&entry.file_name(shard.number));
    let path = shard_file.path().to_owned();
    let is_new =
        !(shard_file.is_published(&bytes, header.file_len) && shard_file.renew_published());
    if is_new {
        shard_file.publish_without_folder(&bytes, header.file_len)?;
    }
    Ok(WrittenShard { entry, path, is_new, summary })
}

/// Writes the manifest of shards that are published, and does not publish it.
pub(super) fn stage_manifest(
    options: &WriterOptions,
    file: NewFile,
    (shards, metadata): (Vec<ShardEntry>, &MetadataBuilder),
    (replaced, new, lock): (Replaced, NewShards, Option<ShardsLock>),
    summary: Summary,
) -> Result<Staged> {
    let manifest = Manifest {
        version_minor: VERSION_MINOR,
        seed: options.seed,
        shards,
        metadata: metadata.to_bytes(),
    };
    options.reporter.start(Stage::Syncing, 0);
    file.sync_folder()?;
    let bytes = manifest.to_bytes();
    file.stage(&bytes, bytes.len() as u64)?;
    Ok(Staged { lock, file, replaced, new: Some(new), summary })
}

impl Reporter {
    /// Returns a reporter of a part of the rows: the rows of other parts count as well, and sorting
    /// is not reported, because parts are sorted and written by turns.
    fn of_part(&self, done: u64, total: u64) -> Self {
        self.map(move |mut progress| {
            let is_writing = progress.stage == Stage::Writing;
            is_writing.then(|| {
                progress.done += done;
                progress.total = total;
                progress
            })
        })
    }
}
