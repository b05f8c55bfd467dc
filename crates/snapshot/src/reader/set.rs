//! Opening of a set of shards by its manifest.

use super::file::SnapshotFile;
use super::map::Map;
use crate::error::{Error, Result};
use crate::format::header::Shard;
use crate::format::layout::header as at;
use crate::format::manifest::{Manifest, ShardEntry};
use std::io::ErrorKind;
use std::path::Path;

/// What was found at the path of a manifest.
pub(super) enum Opened {
    /// The manifest, and the files of the shards in its order.
    Set(Manifest, Vec<SnapshotFile>),
    /// A shard is missing because the set was replaced: by the file in this map.
    Replaced(Map),
}

/// Opens the files of the set whose manifest is in `map`. A builder removes the shards of the set
/// that it replaces: if one is missing, the manifest is read again.
///
/// # Errors
/// Returns the errors of [`OpenOptions::open`](super::OpenOptions::open).
pub(super) fn open(map: &Map, map_file: impl Fn(&Path) -> Result<Map>) -> Result<Opened> {
    let path = map.path();
    let manifest = Manifest::decode(map.bytes(), path);
    map.check_readable()?;
    let manifest = manifest?;
    let files = manifest.paths(path).zip(&manifest.shards).zip(0..);
    let opened = files.map(|((path, entry), number)| {
        let of = manifest.shards.len() as u32;
        open_shard(map_file(&path)?, (manifest.seed, Shard { number, of }), entry)
    });
    match opened.collect() {
        Err(Error::Io(error)) if error.source.kind() == ErrorKind::NotFound => {
            let now = map_file(path)?;
            if now.bytes() == map.bytes() {
                return Err(Error::Io(error));
            }
            Ok(Opened::Replaced(now))
        }
        opened => Ok(Opened::Set(manifest, opened?)),
    }
}

/// Opens a shard and compares it with the manifest.
fn open_shard(map: Map, (seed, shard): (u64, Shard), entry: &ShardEntry) -> Result<SnapshotFile> {
    let file = SnapshotFile::new(map)?;
    let header = &file.header;
    for (at, what, expected, found) in [
        (at::HASH, "checksum", entry.header_hash, file.header_hash()),
        (at::SEED, "seed", seed, header.seed),
        (at::FILE_LEN, "file length", entry.file_len, header.file_len),
        (at::ENTRIES, "number of entries", entry.entries, header.entries),
    ] {
        if found != expected {
            let expected = format!("the {what} in the manifest, {expected}");
            return Err(file.corrupt(at as u64, expected, found));
        }
    }
    if header.shard != Some(shard) {
        let expected = format!("shard {} of {}", shard.number, shard.of);
        let found = header.shard.map(|found| format!("shard {} of {}", found.number, found.of));
        let found = found.unwrap_or_else(|| "a file that is not a shard".to_owned());
        return Err(file.corrupt(at::SHARD as u64, expected, found));
    }
    Ok(file)
}
