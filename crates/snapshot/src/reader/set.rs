//! Opening of a set of shards by its manifest.

use super::file::SnapshotFile;
use super::map::Map;
use crate::error::{Error, Result};
use crate::format::header::Shard;
use crate::format::layout::header as at;
use crate::format::manifest::{Manifest, ShardEntry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What was found at the path of a manifest.
pub(super) enum Opened {
    /// The manifest, and the files of the shards in its order.
    Set(Manifest, Vec<SnapshotFile>),
    /// A shard is missing because the set was replaced: by the file in this map.
    Replaced(Map),
}

/// Opens the files of the set whose manifest is in `map`. The shards are in the folder of the real
/// path of the manifest, so symbolic links are followed. A builder removes the shards of the set
/// that it replaces, and a link may be switched to another set: if a shard is missing, the path of
/// `map` is read again, with `map_again`.
///
/// # Errors
/// Returns the errors of [`OpenOptions::open`](super::OpenOptions::open).
pub(super) fn open(
    map: &Map,
    map_file: impl Fn(&Path) -> Result<Map>,
    map_again: impl Fn() -> Result<Map>,
) -> Result<Opened> {
    let path = map.path();
    let real_path = real_path(path);
    let linked = real_path.as_deref().filter(|real_path| !is_in_folder_of(path, real_path));
    let linked_map = match linked {
        Some(linked) => map_linked(linked, path, &map_file)?,
        None => None,
    };
    let map = linked_map.as_ref().unwrap_or(map);
    let manifest = Manifest::decode(map.bytes(), path);
    map.check_readable()?;
    let manifest = manifest?;
    let files = manifest.paths(linked.unwrap_or(path)).zip(&manifest.shards).zip(0..);
    let opened = files.map(|((path, entry), number)| {
        let of = manifest.shards.len() as u32;
        open_shard(map_file(&path)?, (manifest.seed, Shard { number, of }), entry)
    });
    match opened.collect() {
        Err(Error::Io(error)) if error.source.kind() == ErrorKind::NotFound => {
            let now = map_again()?;
            if now.bytes() == map.bytes() && self::real_path(path) == real_path {
                return Err(Error::Io(error));
            }
            Ok(Opened::Replaced(now))
        }
        opened => Ok(Opened::Set(manifest, opened?)),
    }
}

/// Returns the absolute path of a file without symbolic links, or `None` if the system cannot
/// determine it, for instance because the file was removed.
fn real_path(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

/// Returns whether the folder of `path` is that of `real_path`, a path without symbolic links.
fn is_in_folder_of(path: &Path, real_path: &Path) -> bool {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    self::real_path(folder.unwrap_or(Path::new("."))).as_deref() == real_path.parent()
}

/// Maps the manifest at `linked`, the real path of `path`. Its errors name `path`. Returns `None`
/// if it is no longer there: then its shards are missing, too, or its old bytes are still valid.
fn map_linked(
    linked: &Path,
    path: &Path,
    map_file: impl Fn(&Path) -> Result<Map>,
) -> Result<Option<Map>> {
    match map_file(linked) {
        Ok(map) if Manifest::is_manifest(map.bytes()) => Ok(Some(map.with_path(path))),
        Ok(_) => Ok(None),
        Err(Error::Io(error)) if error.source.kind() == ErrorKind::NotFound => Ok(None),
        Err(Error::Io(error)) => Err(Error::io(path, error.operation, error.source)),
        Err(error) => Err(error),
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
