//! Writing of a set: its shards, then its manifest.

use super::options::WriterOptions;
use super::progress::{Reporter, Stage};
use super::publish::NewFile;
use super::rows::Rows;
use super::shard_files::{NewShards, Replaced};
use super::shard_rows::ShardRows;
use super::spill::SpillFile;
use super::staged::Staged;
use super::{Summary, write_file};
use crate::error::Result;
use crate::format::header::Shard;
use crate::format::layout::{VERSION_MINOR, header as header_at};
use crate::format::manifest::{Manifest, ShardEntry};
use crate::format::metadata::MetadataBuilder;
use std::collections::HashSet;
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
    let (all, of) = (rows.count(), rows.shards());
    let mut manifest = Manifest {
        version_minor: VERSION_MINOR,
        seed: options.seed,
        shards: Vec::new(),
        metadata: metadata.to_bytes(),
    };
    let (mut sum, mut done) = (Summary::default(), 0);
    let no_metadata = MetadataBuilder::default();
    for number in 0..of {
        let mut rows_of_shard =
            Rows::new(file.folder(), options.memory / 2, options.threads, Arc::clone(blobs));
        let count = rows.take(number, &mut rows_of_shard)?;
        let reporter = options.reporter.of_part(done, all);
        let options = WriterOptions { reporter, ..options.clone() };
        let mut shard_file = file.sibling()?;
        let shard = Some(Shard { number, of });
        let (header, summary) =
            write_file(&options, &shard_file, blobs, rows_of_shard, (&no_metadata, shard))?;
        let bytes = header.to_bytes();
        let (_, hash) = bytes.split_at(header_at::HASH);
        let entry = ShardEntry {
            file_len: header.file_len,
            entries: header.entries,
            header_hash: u64::from_le_bytes(hash.try_into().expect("eight bytes")),
        };
        shard_file.set_name(&entry.file_name(number));
        if !shard_file.is_published(&bytes, header.file_len) {
            new.paths.insert(shard_file.path().to_owned());
            shard_file.publish_without_folder(&bytes, header.file_len)?;
        }
        manifest.shards.push(entry);
        done += count;
        sum.add(&summary);
    }
    options.reporter.start(Stage::Syncing, 0);
    file.sync_folder()?;
    let bytes = manifest.to_bytes();
    file.stage(&bytes, bytes.len() as u64)?;
    Ok(Staged { file, replaced, new: Some(new), summary: sum })
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
