//! The upload of files as objects.

use super::source::{Source, SourceFile};
use super::stored::StoredObjects;
use crate::destination::{Destination, NewFile};
use crate::error::{Error, Result};
use crate::manifest::{DataFile, Manifest};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::fmt::Display;
use std::os::unix::fs::FileExt;

/// Length of a part of an upload, and maximum length of a file that is sent in one request. Stores
/// allow 10,000 parts, so longer files have longer parts.
const MIN_PART_BYTES: u64 = 8 << 20;
/// Maximum number of parts, with some room below the limit of the stores.
const MAX_PARTS: u64 = 9_000;
/// Parts of a file that are uploaded at the same time.
const MAX_CONCURRENT_PARTS: usize = 4;

/// The progress of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// Bytes of this generation that are at the destination, reused files included.
    pub bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
}

/// Uploads the files that no generation of the next manifest has. Returns all files with the names
/// of their objects, and the number of uploaded bytes.
///
/// The name of an object begins with its hash. The serial number makes it new: another publisher
/// may be removing an object with the same contents, which the manifest no longer names.
pub(super) async fn upload(
    destination: &Destination,
    source: &Source,
    (manifest, stored): (&mut Manifest, &StoredObjects),
    progress: impl Fn(Uploaded),
) -> Result<(Vec<DataFile>, u64)> {
    let total_bytes = source.files.iter().map(|file| file.bytes).sum();
    let (mut files, mut present, mut uploaded) = (Vec::new(), 0, 0);
    for file in &source.files {
        let known = manifest.files_with(&file.blake3, file.bytes).find(|known| stored.has(known));
        let (object, delta) = if let Some(known) = known {
            (known.object.clone(), known.delta.clone())
        } else if let Some(shard) = &file.uploaded {
            shard.check_stored(destination, stored)?;
            uploaded += shard.bytes;
            repair(manifest, file, &shard.object);
            (shard.object.clone(), shard.delta.clone().filter(|delta| stored.has_delta(delta)))
        } else {
            let report = |bytes| progress(Uploaded { bytes: present + bytes, total_bytes });
            let object = upload_object(destination, file, manifest.serial, report).await?;
            uploaded += file.bytes;
            repair(manifest, file, &object);
            (object, None)
        };
        present += file.bytes;
        progress(Uploaded { bytes: present, total_bytes });
        let (name, blake3) = (file.name.clone(), file.blake3.clone());
        files.push(DataFile { name, bytes: file.bytes, blake3, object, delta });
    }
    Ok((files, uploaded))
}

/// Uploads a file as an object. Returns the name of the object: the hash of the file, a hyphen and
/// a suffix that makes it new.
pub(super) async fn upload_object(
    destination: &Destination,
    file: &SourceFile,
    suffix: impl Display,
    progress: impl Fn(u64),
) -> Result<String> {
    let object = format!("{}-{suffix}", file.blake3);
    match destination.new_file(&object, file.mode) {
        Some(new) => copy_file(new?, file, progress)?,
        None if file.bytes <= MIN_PART_BYTES => put_file(destination, file, &object).await?,
        None => upload_file(destination, file, &object, progress).await?,
    }
    Ok(object)
}

/// Makes files of all generations with the same contents use a new object: theirs is missing or has
/// other bytes.
fn repair(manifest: &mut Manifest, file: &SourceFile, object: &str) {
    let files = manifest.generations.iter_mut().flat_map(|generation| &mut generation.files);
    for known in files.filter(|known| known.blake3 == file.blake3) {
        object.clone_into(&mut known.object);
    }
}

fn copy_file(mut new: NewFile, file: &SourceFile, progress: impl Fn(u64)) -> Result<()> {
    let (mut done, mut hasher) = (0, blake3::Hasher::new());
    while done < file.bytes {
        let bytes = part(file, done, MIN_PART_BYTES.min(file.bytes - done))?;
        hasher.update(&bytes);
        new.write(&bytes)?;
        done += bytes.len() as u64;
        progress(done);
    }
    check_unchanged(file, &hasher)?;
    new.publish()
}

/// Fails if other bytes were sent than were hashed before.
fn check_unchanged(file: &SourceFile, sent: &blake3::Hasher) -> Result<()> {
    if sent.finalize().to_hex().as_str() == file.blake3 {
        return Ok(());
    }
    Err(Error::Contents {
        place: file.path.display().to_string(),
        expected: "a file that does not change while it is published".to_owned(),
        found: "other bytes than before".to_owned(),
    })
}

/// Uploads a file in one request.
async fn put_file(destination: &Destination, file: &SourceFile, object: &str) -> Result<()> {
    let bytes = part(file, 0, file.bytes)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes);
    check_unchanged(file, &hasher)?;
    destination.put(object, bytes).await
}

/// Uploads a file in parts.
async fn upload_file(
    destination: &Destination,
    file: &SourceFile,
    object: &str,
    progress: impl Fn(u64),
) -> Result<()> {
    let mut upload = destination.upload(object).await?;
    let part_bytes = MIN_PART_BYTES.max(file.bytes.div_ceil(MAX_PARTS));
    let mut hasher = blake3::Hasher::new();
    let mut parts = FuturesUnordered::new();
    let (mut read, mut done) = (0, 0);
    let sent: Result<()> = async {
        while done < file.bytes {
            if read < file.bytes && parts.len() < MAX_CONCURRENT_PARTS {
                let bytes = part(file, read, part_bytes.min(file.bytes - read))?;
                hasher.update(&bytes);
                let len = bytes.len() as u64;
                read += len;
                let part = upload.put_part(bytes.into());
                parts.push(async move { part.await.map(|()| len) });
                continue;
            }
            match parts.next().await {
                Some(Ok(len)) => done += len,
                Some(Err(error)) => {
                    return Err(destination.object_failure("write", object, &error));
                }
                None => unreachable!("a part is under way"),
            }
            progress(done);
        }
        check_unchanged(file, &hasher)
    }
    .await;
    drop(parts);
    let completed = match sent {
        Ok(()) => upload.complete().await.map(drop),
        Err(error) => {
            let _ = upload.abort().await;
            return Err(error);
        }
    };
    if completed.is_err() {
        // Otherwise the store keeps the parts.
        let _ = upload.abort().await;
    }
    completed.map_err(|e| destination.object_failure("write", object, &e))
}

fn part(file: &SourceFile, at: u64, len: u64) -> Result<Bytes> {
    let mut bytes = vec![0; len as usize];
    let read = file.file.read_exact_at(&mut bytes, at);
    read.map_err(|e| Error::io(&file.path, "read", e))?;
    Ok(bytes.into())
}
