//! Fetching of a file, in ranges, continued where an earlier attempt stopped.

use super::bandwidth::RangeLimits;
use super::folder::Folder;
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::manifest::DataFile;
use futures_util::stream::{FuturesOrdered, StreamExt};
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use tokio::time::Instant;

/// A file that is fetched.
pub(super) struct Fetch<'a> {
    pub(super) destination: &'a Destination,
    pub(super) folder: &'a Folder,
    pub(super) file: &'a DataFile,
}

impl Fetch<'_> {
    /// Fetches the rest of the file into its partial file, and checks the hash of all of it.
    /// Returns the number of bytes that were fetched.
    pub(super) async fn run(
        &self,
        range_limits: RangeLimits<'_>,
        progress: impl Fn(u64),
    ) -> Result<u64> {
        let path = self.folder.partial(self.file);
        loop {
            let is_continued = fs::metadata(&path).is_ok_and(|found| found.len() > 0);
            let fetched = self.fetch(&path, range_limits, &progress).await;
            if !matches!(fetched, Err(Error::Contents { .. })) {
                return fetched;
            }
            // Its bytes are wrong. Those of an earlier attempt can be the cause.
            let _ = fs::remove_file(&path);
            if !is_continued {
                return fetched;
            }
        }
    }

    async fn fetch(
        &self,
        path: &Path,
        range_limits: RangeLimits<'_>,
        progress: impl Fn(u64),
    ) -> Result<u64> {
        let failed = |operation| move |e| Error::io(path, operation, e);
        let mut hasher = blake3::Hasher::new();
        let mut partial = open_partial(path).map_err(failed("open"))?;
        let start = self.resume(&mut partial, &mut hasher).map_err(failed("read"))?;
        let len = self.file.bytes;
        let (mut requested, mut written) = (start, start);
        let mut ranges = FuturesOrdered::new();
        while written < len {
            if requested < len && ranges.len() < range_limits.max_concurrent() {
                let end = len.min(requested + range_limits.range_bytes());
                range_limits.wait_for(end - requested).await;
                let range = requested..end;
                ranges.push_back(async {
                    let begin = Instant::now();
                    let read = self.destination.read(&self.file.object, range.clone()).await;
                    match &read {
                        Ok(_) => range_limits.pace.received(begin.elapsed()),
                        Err(_) => range_limits.pace.slow_down(),
                    }
                    self.check_length(range, read?)
                });
                requested = end;
                continue;
            }
            let bytes = ranges.next().await.expect("a range is requested")?;
            hasher.update(&bytes);
            partial.write_all(&bytes).map_err(failed("write"))?;
            written += bytes.len() as u64;
            progress(written);
        }
        let found = hasher.finalize().to_hex();
        if found.as_str() != self.file.blake3 {
            return Err(Error::Contents {
                place: self.destination.object_address(&self.file.object),
                expected: format!("the BLAKE3 hash {}", self.file.blake3),
                found: found.to_string(),
            });
        }
        partial.sync_all().map_err(failed("sync"))?;
        Ok(written - start)
    }

    /// Hashes what an earlier attempt fetched. Returns its length.
    fn resume(&self, partial: &mut File, hasher: &mut blake3::Hasher) -> std::io::Result<u64> {
        let len = partial.metadata()?.len();
        if len > self.file.bytes {
            partial.set_len(0)?;
            return Ok(0);
        }
        hasher.update_reader(&mut *partial)?;
        partial.seek(SeekFrom::Start(len))
    }

    fn check_length(
        &self,
        range: std::ops::Range<u64>,
        bytes: Option<bytes::Bytes>,
    ) -> Result<bytes::Bytes> {
        let expected = range.end - range.start;
        let object = self.destination.object_address(&self.file.object);
        match bytes {
            Some(bytes) if bytes.len() as u64 == expected => Ok(bytes),
            Some(found) => Err(Error::Store {
                operation: "read",
                object,
                reason: format!(
                    "expected {expected} bytes at {}, found {}",
                    range.start,
                    found.len()
                ),
            }),
            None => Err(Error::ObjectNotFound { object }),
        }
    }
}

fn open_partial(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)
}
