//! The files of a snapshot that is published.

use super::uploaded::UploadedShard;
use crate::error::{Error, Result};
use crate::manifest::DataFile;
use nuthatch_snapshot::Snapshot;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A verified snapshot, with the hashes of its files.
pub(super) struct Source {
    pub(super) files: Vec<SourceFile>,
    pub(super) entries: u64,
    pub(super) metadata: BTreeMap<String, String>,
}

/// A file of a snapshot. It stays open, so that a build which replaces it meanwhile has no effect.
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) file: File,
    pub(super) bytes: u64,
    pub(super) blake3: String,
    /// Its permissions, which a copy in a folder does not exceed.
    pub(super) mode: u32,
    /// The shard that is at the destination already. Then `file` has only the header.
    pub(super) uploaded: Option<UploadedShard>,
}

impl Source {
    /// Opens and verifies a snapshot, and hashes its files. The first of them is published with a
    /// name, whatever it has here; shards keep the names that the manifest of the set has.
    ///
    /// Of the shards that were uploaded before, only the header is here: they were verified then.
    pub(super) fn read(path: &Path, name: &str, uploaded: &[UploadedShard]) -> Result<Self> {
        let first = open(path, name)?;
        let snapshot = Snapshot::open(path)?;
        if uploaded.is_empty() {
            snapshot.verify()?;
        }
        first.check_in_place()?;
        let uploaded: HashMap<_, _> =
            uploaded.iter().map(|shard| (shard.name.as_str(), shard)).collect();
        let mut files = vec![first];
        for shard in snapshot.shard_paths() {
            let name = shard.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name == files[0].name {
                return Err(Error::Contents {
                    place: path.display().to_string(),
                    expected: "another name than those of its shards (--name)".to_owned(),
                    found: format!("{name:?}"),
                });
            }
            files.push(match uploaded.get(name) {
                Some(uploaded) => open_header(shard, uploaded)?,
                None if uploaded.is_empty() => open(shard, name)?,
                None => {
                    Snapshot::open(shard)?.verify()?;
                    open(shard, name)?
                }
            });
        }
        let text = |value| String::from_utf8_lossy(value).into_owned();
        let metadata = snapshot.metadata()?;
        let metadata = metadata.iter().map(|(name, value)| (name.to_owned(), text(value)));
        Ok(Self { files, entries: snapshot.len(), metadata: metadata.collect() })
    }

    /// Returns the permissions of the snapshot, or of the manifest of the set.
    pub(super) fn mode(&self) -> u32 {
        self.files[0].mode
    }

    /// Returns the files as a manifest describes them, without the names of their objects.
    pub(super) fn data_files(&self) -> Vec<DataFile> {
        let files = self.files.iter().map(|file| DataFile {
            name: file.name.clone(),
            bytes: file.bytes,
            blake3: file.blake3.clone(),
            object: String::new(),
            delta: None,
        });
        files.collect()
    }
}

impl SourceFile {
    /// Fails if another file has taken the place of this one: then it is not the one that was
    /// verified.
    fn check_in_place(&self) -> Result<()> {
        let failed = |e| Error::io(&self.path, "stat", e);
        let here = self.file.metadata().map_err(failed)?;
        let now = std::fs::metadata(&self.path).map_err(failed)?;
        if (here.dev(), here.ino()) == (now.dev(), now.ino()) {
            return Ok(());
        }
        Err(Error::Contents {
            place: self.path.display().to_string(),
            expected: "a file that stays in place while it is published".to_owned(),
            found: "another file".to_owned(),
        })
    }
}

/// Opens and hashes a file.
pub(super) fn open(path: &Path, name: &str) -> Result<SourceFile> {
    let failed = |operation| move |e| Error::io(path, operation, e);
    // Opening a pipe would wait for a writer.
    if !std::fs::metadata(path).map_err(failed("open"))?.is_file() {
        return Err(Error::Contents {
            place: path.display().to_string(),
            expected: "a regular file".to_owned(),
            found: "a folder, device, pipe or socket".to_owned(),
        });
    }
    let mut file = File::open(path).map_err(failed("open"))?;
    let found = file.metadata().map_err(failed("stat"))?;
    let (bytes, mode) = (found.len(), found.mode());
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&mut file).map_err(failed("read"))?;
    let blake3 = hasher.finalize().to_hex().to_string();
    let (path, name) = (path.to_owned(), name.to_owned());
    Ok(SourceFile { path, name, file, bytes, blake3, mode, uploaded: None })
}

/// Opens the file with the header of a shard that was uploaded.
fn open_header(path: &Path, shard: &UploadedShard) -> Result<SourceFile> {
    let failed = |operation| move |e| Error::io(path, operation, e);
    let file = File::open(path).map_err(failed("open"))?;
    let mode = file.metadata().map_err(failed("stat"))?.mode();
    let (name, blake3) = (shard.name.clone(), shard.blake3.clone());
    let (path, bytes, uploaded) = (path.to_owned(), shard.bytes, Some(shard.clone()));
    Ok(SourceFile { path, name, file, bytes, blake3, mode, uploaded })
}
