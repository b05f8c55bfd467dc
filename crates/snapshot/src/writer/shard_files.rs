//! The shards of sets in a folder: those that a build has published, and those that no manifest
//! refers to any more.

use super::shards_lock::{Removal, ShardsLock};
use crate::format::layout::MANIFEST_MAGIC;
use crate::format::manifest::Manifest;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age, compared with the manifest of a new set, at which a shard that no manifest refers to is
/// removed. Younger ones may be those that processes have built separately.
const ORPHAN_AGE: Duration = Duration::from_hours(24);

/// The shards of the set that a new snapshot replaces; none if it replaces a file.
#[derive(Debug)]
pub(super) struct Replaced {
    path: PathBuf,
    shards: HashSet<PathBuf>,
}

impl Replaced {
    /// Returns the shards of the manifest at a path, before another file is published there.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), shards: shards_of(path).unwrap_or_default() }
    }

    /// Removes those of the shards that no manifest in the folder refers to any more.
    pub(super) fn remove(self) {
        remove_unreferenced(&self.path, self.shards, false);
    }

    /// Does the same, and also removes old shards in the folder that no manifest refers to: those
    /// of builds that were killed.
    pub(super) fn remove_with_orphans(self) {
        remove_unreferenced(&self.path, self.shards, true);
    }
}

/// The shards that a build has published. Those that no manifest refers to when this is dropped are
/// removed: all of them, if the build failed.
#[derive(Debug)]
pub(super) struct NewShards {
    pub(super) manifest: PathBuf,
    pub(super) paths: HashSet<PathBuf>,
}

impl Drop for NewShards {
    fn drop(&mut self) {
        remove_unreferenced(&self.manifest, std::mem::take(&mut self.paths), false);
    }
}

/// Removes the snapshot at a path: a file, or a manifest with those of its shards that no other
/// manifest in the folder refers to.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    let removed = Replaced::at(path);
    fs::remove_file(path)?;
    removed.remove();
    Ok(())
}

/// Returns the paths of the shards of the manifest at a path; none if there is no file, or a file
/// of another kind. Returns `None` if there may be a manifest that cannot be read: the file cannot
/// be opened, or it is a manifest that is damaged or of a newer version.
fn shards_of(path: &Path) -> Option<HashSet<PathBuf>> {
    match read_manifest(path) {
        Ok(Some(bytes)) => Some(Manifest::decode(&bytes, path).ok()?.paths(path).collect()),
        Ok(None) => Some(HashSet::new()),
        Err(error) => (error.kind() == ErrorKind::NotFound).then(HashSet::new),
    }
}

/// Reads the file at a path if it begins as a manifest does.
fn read_manifest(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Checked before opening: opening a named pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(MANIFEST_MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if !Manifest::is_manifest(&bytes) {
        return Ok(None);
    }
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Removes those of these shards that no manifest in the folder refers to, and if `orphans` is set,
/// others that are old; none if a build of another set runs in the folder, or if a file there
/// cannot be read and may be a manifest. Ignores errors, because files that remain do not interfere
/// with a set, and a later build removes them.
fn remove_unreferenced(manifest: &Path, mut shards: HashSet<PathBuf>, orphans: bool) {
    let folder = manifest.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    if shards.is_empty() && !orphans {
        return;
    }
    // Held until the shards are removed: another build must not rely on one of them meanwhile.
    let lock = match ShardsLock::try_exclusive(folder) {
        Removal::Busy => return,
        Removal::Unknown => None,
        exclusive @ Removal::Exclusive(_) => Some(exclusive),
    };
    if orphans && lock.is_some() {
        shards.extend(old_shards(manifest, folder));
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let Ok(entry) = entry else { return };
        let path = manifest.with_file_name(entry.file_name());
        if is_shard_name(&path) {
            continue;
        }
        let Some(referenced) = shards_of(&path) else { return };
        for shard in referenced {
            shards.remove(&shard);
        }
    }
    for shard in shards {
        let _ = fs::remove_file(shard);
    }
}

/// Returns the shards in a folder that are much older than a manifest there.
fn old_shards(manifest: &Path, folder: &Path) -> Vec<PathBuf> {
    let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
    let Ok(now) = modified(manifest) else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| manifest.with_file_name(entry.file_name()));
    let is_old = |path: &PathBuf| {
        let age = modified(path).ok().and_then(|then| now.duration_since(then).ok());
        is_shard_name(path) && age.is_some_and(|age| age > ORPHAN_AGE)
    };
    paths.filter(is_old).collect()
}

/// Returns whether a path has the name of a shard, as `ShardEntry::file_name` returns it.
fn is_shard_name(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    let parts = name.and_then(|name| name.strip_suffix(".shard")?.split_once('-'));
    parts.is_some_and(|(number, hash)| {
        (number.len(), hash.len()) == (5, 16)
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
