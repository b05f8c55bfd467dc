//! Shards that are built separately, for example on several machines, and the set that is made of
//! them.

use super::options::WriterOptions;
use super::publish::NewFile;
use super::set::{rows_of_shard, stage_manifest, write_shard};
use super::shard_files::{NewShards, Replaced};
use super::shards_lock::ShardsLock;
use super::spill::SpillFile;
use super::{AddedRows, Summary, Writer};
use crate::error::{Error, Result};
use crate::format::header::{Header, Shard};
use crate::format::layout::header as header_at;
use crate::format::manifest::ShardEntry;
use crate::format::metadata::MetadataBuilder;
use crate::format::raw_header::RawHeader;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A shard from [`Writer::finish_shards`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltShard {
    /// The number of the shard in its set, from 0.
    pub number: u32,
    /// The path of the file.
    pub path: PathBuf,
    /// Number of entries.
    pub entries: u64,
    /// Length of the file in bytes.
    pub file_len: u64,
}

impl Writer {
    /// Writes the shards of a set that have rows into the folder of the path, and no manifest. The
    /// files have the bytes that [`finish`](Self::finish) would give them. Several processes can
    /// build different shards of a set; [`WriterOptions::join_shards`] makes the set. That must be
    /// within a day: later, a build of another set in the folder removes the shards.
    ///
    /// # Errors
    /// Returns the errors of [`finish`](Self::finish), and [`Error::Io`] for a writer without
    /// shards.
    pub fn finish_shards(self) -> Result<Vec<BuiltShard>> {
        let Self { options, file, blobs, rows, .. } = self;
        let AddedRows::Set(mut rows) = rows else {
            let source = ErrorKind::InvalidInput.into();
            return Err(Error::io(
                file.path(),
                "write the shards of a file without shards",
                source,
            ));
        };
        let (of, mut built) = (rows.shards(), Vec::new());
        for number in 0..of {
            let mut rows_of_shard = rows_of_shard(&options, &file, &blobs);
            if rows.take(number, &mut rows_of_shard)? == 0 {
                continue;
            }
            let written =
                write_shard(&options, &file, &blobs, rows_of_shard, Shard { number, of })?;
            let ShardEntry { file_len, entries, .. } = written.entry;
            built.push(BuiltShard { number, path: written.path, entries, file_len });
        }
        file.sync_folder()?;
        Ok(built)
    }
}

impl WriterOptions {
    /// Makes a set of shards from [`Writer::finish_shards`], and publishes its manifest at a path.
    /// The files must be in the folder of the path. Builds empty shards in place of those that are
    /// not listed. Seed and number of shards must be those of the files.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if a file is not a shard of such a set or two files are the same
    /// shard, the errors of reading the files, and those of [`Writer::finish`]. Shards are not
    /// verified beyond their headers.
    pub fn join_shards(
        &self,
        path: impl AsRef<Path>,
        shards: &[PathBuf],
        metadata: &[(&str, &[u8])],
    ) -> Result<Summary> {
        let Writer { options, file, blobs, .. } = self.create(path)?;
        let mut pairs = MetadataBuilder::default();
        metadata.iter().try_for_each(|(name, value)| pairs.set(name, value))?;
        let mut found = options.read_shards(&file, shards)?;
        let replaced = Replaced::at(file.path());
        let mut new = NewShards { manifest: file.path().to_owned(), paths: HashSet::new() };
        // Dropped before the new shards, if this fails.
        let lock = ShardsLock::share(file.folder());
        let (mut entries, mut sum) = (Vec::new(), Summary::default());
        for number in 0..options.shards {
            let (entry, summary) = match found.remove(&number) {
                Some(found) => found,
                None => options.write_empty((&file, &blobs), number, &mut new)?,
            };
            entries.push(entry);
            sum.add(&summary);
        }
        stage_manifest(&options, file, (entries, &pairs), (replaced, new, lock), sum)?.publish()
    }

    fn write_empty(
        &self,
        (file, blobs): (&NewFile, &Arc<SpillFile>),
        number: u32,
        new: &mut NewShards,
    ) -> Result<(ShardEntry, Summary)> {
        let shard = Shard { number, of: self.shards };
        let rows = rows_of_shard(self, file, blobs);
        let written = write_shard(self, file, blobs, rows, shard)?;
        if written.is_new {
            new.paths.insert(written.path);
        }
        Ok((written.entry, written.summary))
    }

    /// Reads the headers of shards. Returns their entries in the manifest, by number.
    fn read_shards(
        &self,
        file: &NewFile,
        shards: &[PathBuf],
    ) -> Result<BTreeMap<u32, (ShardEntry, Summary)>> {
        let mut found = BTreeMap::new();
        for path in shards {
            let (header, entry) = read_shard(path)?;
            let at = header_at::SHARD as u64;
            let number = match header.shard {
                Some(shard) if shard.of == self.shards => shard.number,
                shard => {
                    let expected = format!("a shard of {}", self.shards);
                    let found =
                        shard.map(|shard| format!("shard {} of {}", shard.number, shard.of));
                    let found = found.unwrap_or_else(|| "a file that is not a shard".to_owned());
                    return Err(Error::corrupt(path, at, expected, found));
                }
            };
            if header.seed != self.seed {
                let (at, expected) = (header_at::SEED as u64, format!("seed {}", self.seed));
                return Err(Error::corrupt(path, at, expected, header.seed));
            }
            if path.file_name() != Some(entry.file_name(number).as_ref())
                || !is_same_folder(file.folder(), path)
            {
                let message = format!("expected {} beside the manifest", entry.file_name(number));
                let source = io::Error::new(ErrorKind::InvalidInput, message);
                return Err(Error::io(path, "join shards", source));
            }
            let summary = Summary {
                entries: header.entries,
                rows: header.entries,
                file_len: header.file_len,
                key_bytes: header.key_bytes,
                value_bytes: header.value_bytes,
                stored_value_bytes: header.stored_value_bytes,
            };
            if found.insert(number, (entry, summary)).is_some() {
                let expected = format!("one file of shard {number}");
                return Err(Error::corrupt(path, at, expected, "a second one"));
            }
        }
        Ok(found)
    }
}

fn is_same_folder(folder: &Path, path: &Path) -> bool {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let real = |folder: &Path| std::fs::canonicalize(folder).ok();
    real(parent.unwrap_or(Path::new("."))) == real(folder)
}

/// Reads and validates the header of a file.
fn read_shard(path: &Path) -> Result<(Header, ShardEntry)> {
    let failed = |operation| move |e| Error::io(path, operation, e);
    let file = File::open(path).map_err(failed("open"))?;
    let len = file.metadata().map_err(failed("stat"))?.len();
    let mut bytes = [0; header_at::LEN];
    let read = &mut bytes[..len.min(header_at::LEN as u64) as usize];
    file.read_exact_at(read, 0).map_err(failed("read"))?;
    let header = RawHeader::new(read, path)?.validate(len)?;
    Ok((header.clone(), ShardEntry::of(&header, &bytes)))
}
