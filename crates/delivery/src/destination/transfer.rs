//! Transfers of whole files between a destination and the local disk.

use super::{Destination, failure};
use crate::error::{Error, Result};
use crate::manifest::DataFile;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as StorePath;
use object_store::{GetResult, ObjectStoreExt, WriteMultipart};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// The folder of the staged files.
const STAGING: &str = "staging";
/// Length of a part of an upload.
const PART_BYTES: usize = 8 << 20;
/// Parts that are uploaded at the same time.
const MAX_CONCURRENT_PARTS: usize = 4;

impl Destination {
    /// Uploads a file of a job. Returns its length and its hash.
    pub(crate) async fn put_staged(
        &self,
        job: &str,
        name: &str,
        file: &Path,
    ) -> Result<(u64, String)> {
        let failed = |e| Error::io(file, "read", e);
        let address = self.staged_address(job, name);
        let failed_store = |e| failure("write", &address, &e);
        let mut source = File::open(file).map_err(failed)?;
        let upload = self.store.put_multipart(&self.staged_path(job).join(name)).await;
        let mut upload =
            WriteMultipart::new_with_chunk_size(upload.map_err(failed_store)?, PART_BYTES);
        let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
        let mut buffer = vec![0; PART_BYTES];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) => {
                    let _ = upload.abort().await;
                    return Err(failed(error));
                }
            };
            hasher.update(&buffer[..read]);
            upload.write(&buffer[..read]);
            bytes += read as u64;
            upload.wait_for_capacity(MAX_CONCURRENT_PARTS).await.map_err(failed_store)?;
        }
        upload.finish().await.map_err(failed_store)?;
        Ok((bytes, hasher.finalize().to_hex().to_string()))
    }

    /// Downloads a file of a job. Returns its length and its hash.
    pub(crate) async fn get_staged(
        &self,
        job: &str,
        name: &str,
        to: &Path,
    ) -> Result<(u64, String)> {
        let path = self.staged_path(job).join(name);
        self.get_file(&path, &self.staged_address(job, name), to).await
    }

    /// Downloads an object. Returns its length and its hash.
    pub(crate) async fn get_object(&self, object: &str, to: &Path) -> Result<(u64, String)> {
        self.check_regular(object)?;
        self.get_file(&self.object_path(object), &self.object_address(object), to).await
    }

    /// Reads the object of a file. Returns whether it has the contents of the file; `false` if it
    /// does not exist, or is in a folder and cannot be read.
    ///
    /// # Errors
    /// Returns [`Error::Store`] if a store does not return the object.
    pub(crate) async fn object_is(&self, file: &DataFile) -> Result<bool> {
        let found = self.read_back(file).await;
        // Followers of a folder could not read it either.
        if self.folder.is_some() { Ok(found.unwrap_or(false)) } else { found }
    }

    async fn read_back(&self, file: &DataFile) -> Result<bool> {
        self.check_regular(&file.object)?;
        let response = match self.store.get(&self.object_path(&file.object)).await {
            Ok(response) => response,
            Err(object_store::Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(self.object_failure("read", &file.object, &error)),
        };
        if response.meta.size != file.bytes {
            return Ok(false);
        }
        let found = hash(response, &self.object_address(&file.object), |_| Ok(())).await?;
        Ok(found == (file.bytes, file.blake3.clone()))
    }

    async fn get_file(&self, at: &StorePath, address: &str, to: &Path) -> Result<(u64, String)> {
        let failed = |e| Error::io(to, "write", e);
        let mut file = File::create(to).map_err(failed)?;
        let response = self.store.get(at).await.map_err(|e| failure("read", address, &e))?;
        hash(response, address, |chunk| file.write_all(chunk).map_err(failed)).await
    }

    /// Removes all files of a job.
    pub(crate) async fn remove_staged(&self, job: &str) -> Result<()> {
        if let Some(folder) = &self.folder {
            let staging = folder.join(STAGING);
            let removed = std::fs::remove_dir_all(staging.join(job));
            // Fails if another job has files there.
            let _ = std::fs::remove_dir(&staging);
            return match removed {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(Error::io(&staging.join(job), "remove", error))
                }
                _ => Ok(()),
            };
        }
        let prefix = self.staged_path(job);
        let address = format!("{}/{STAGING}/{job}", self.address);
        let failed = |operation, e| failure(operation, &address, &e);
        let listed: Vec<_> =
            self.store.list(Some(&prefix)).try_collect().await.map_err(|e| failed("list", e))?;
        for found in listed {
            match self.store.delete(&found.location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(failed("remove", error)),
            }
        }
        Ok(())
    }

    fn staged_path(&self, job: &str) -> StorePath {
        self.path.clone().join(STAGING).join(job)
    }

    fn staged_address(&self, job: &str, name: &str) -> String {
        format!("{}/{STAGING}/{job}/{name}", self.address)
    }
}

/// Reads an object, and passes each chunk of it to a function. Returns its length and its hash.
async fn hash(
    response: GetResult,
    address: &str,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<(u64, String)> {
    let mut stream = response.into_stream();
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|e| failure("read", address, &e))?;
        hasher.update(&chunk);
        each(&chunk)?;
        bytes += chunk.len() as u64;
    }
    Ok((bytes, hasher.finalize().to_hex().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link to itself is an error of the system that root gets, too.
    #[tokio::test]
    async fn an_object_of_a_folder_that_cannot_be_read_counts_as_damaged() {
        let directory = tempfile::tempdir().expect("a folder");
        let shared = directory.path().join("shared");
        let destination = Destination::open(shared.to_str().expect("UTF-8")).expect("a folder");
        let object = format!("{}-1", "0".repeat(64));
        let objects = shared.join("objects");
        std::fs::create_dir_all(&objects).expect("a folder");
        std::os::unix::fs::symlink(&object, objects.join(&object)).expect("a link");
        let (name, blake3) = ("users.nut".to_owned(), "0".repeat(64));
        let file = DataFile { name, bytes: 1, blake3, object, delta: None };
        assert!(destination.read_back(&file).await.is_err());
        assert!(!destination.object_is(&file).await.expect("an answer"));
    }
}
