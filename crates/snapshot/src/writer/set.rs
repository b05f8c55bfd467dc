//! Writing of a set: its shards, then its manifest.

use super::options::WriterOptions;
use super::progress::{Reporter, Stage};
use super::publish::NewFile;
use super::rows::Rows;
use super::shard_rows::ShardRows;
use super::spill::SpillFile;
use super::{Summary, write_file};
use crate::error::Result;
use crate::format::header::Shard;
use crate::format::layout::{MANIFEST_MAGIC, VERSION_MINOR, header as header_at};
use crate::format::manifest::{Manifest, ShardEntry};
use crate::format::metadata::MetadataBuilder;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the shards and the manifest of a set, and publishes them.
pub(super) fn write(
    options: &WriterOptions,
    file: NewFile,
    blobs: &Arc<SpillFile>,
    mut rows: ShardRows,
    metadata: &MetadataBuilder,
) -> Result<Summary> {
    let path = file.path().to_owned();
    let replaced = shards_of(&path);
    let mut new = NewShards { manifest: &path, paths: HashSet::new() };
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
    let published = file.publish(&bytes, bytes.len() as u64);
    // If the new manifest is published, it refers to the new shards, which stay.
    drop(new);
    published?;
    remove_unreferenced(&path, replaced);
    Ok(sum)
}

/// The shards that a build has published. Those that no manifest refers to when this is dropped are
/// removed: all of them, if the build failed.
struct NewShards<'a> {
    manifest: &'a Path,
    paths: HashSet<PathBuf>,
}

impl Drop for NewShards<'_> {
    fn drop(&mut self) {
        remove_unreferenced(self.manifest, std::mem::take(&mut self.paths));
    }
}

/// Removes the snapshot at a path: a file, or a manifest with those of its shards that no other
/// manifest in the folder refers to.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    let shards = shards_of(path);
    fs::remove_file(path)?;
    remove_unreferenced(path, shards);
    Ok(())
}

/// Returns the paths of the shards of the manifest at a path; none if no valid manifest is there.
fn shards_of(path: &Path) -> HashSet<PathBuf> {
    let mut magic = [0; MANIFEST_MAGIC.len()];
    let is_manifest = File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && magic == MANIFEST_MAGIC;
    let manifest = is_manifest.then(|| fs::read(path).ok()).flatten();
    let manifest = manifest.and_then(|bytes| Manifest::decode(&bytes, path).ok());
    manifest.map_or_else(HashSet::new, |manifest| manifest.paths(path).collect())
}

/// Removes those of these shards that no manifest in the folder refers to. Ignores errors, because
/// files that remain do not interfere with a set.
fn remove_unreferenced(manifest: &Path, mut shards: HashSet<PathBuf>) {
    if shards.is_empty() {
        return;
    }
    let folder = manifest.parent().filter(|folder| *folder != Path::new(""));
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return };
    for entry in entries {
        // A file that cannot be read may be a manifest.
        let Ok(entry) = entry else { return };
        let path = manifest.with_file_name(entry.file_name());
        for shard in shards_of(&path) {
            shards.remove(&shard);
        }
    }
    for shard in shards {
        let _ = fs::remove_file(shard);
    }
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
