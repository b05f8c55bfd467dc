//! A shard that is at the destination before its set is published.

use super::stored::StoredObjects;
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::manifest::{DataFile, Delta, Manifest};

/// A shard that is at the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedShard {
    /// The name of its file in the set.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of its contents, in hexadecimal digits.
    pub blake3: String,
    /// The name of its object.
    pub object: String,
    /// Whether it is the object of an earlier generation.
    pub is_reused: bool,
    /// The delta that leads to it from a shard of an earlier generation, if one was made.
    pub delta: Option<Delta>,
}

impl UploadedShard {
    /// Fails if the object is missing or has another length, or if another publisher may be
    /// removing it: that of an earlier generation which the manifest no longer has.
    pub(super) fn check_stored(
        &self,
        destination: &Destination,
        stored: &StoredObjects,
    ) -> Result<()> {
        if self.is_reused && !stored.is_named(&self.object) {
            let found = "an object of an earlier generation that another publisher has removed \
                         from the manifest";
            return Err(self.unexpected(destination, found));
        }
        match stored.bytes_of(&self.object) {
            Some(bytes) if bytes == self.bytes => Ok(()),
            Some(bytes) => Err(self.unexpected(destination, &format!("{bytes} bytes"))),
            None => Err(self.unexpected(destination, "no such object")),
        }
    }

    /// Returns the error for an object that is not the shard.
    pub(super) fn unexpected(&self, destination: &Destination, found: &str) -> Error {
        Error::Contents {
            place: destination.object_address(&self.object),
            expected: format!("a shard of {} bytes, as it was uploaded", self.bytes),
            found: format!("{found}; run the job again"),
        }
    }

    /// Returns the shard as a file of a generation.
    pub(super) fn data_file(&self) -> DataFile {
        let Self { name, bytes, blake3, object, delta, .. } = self.clone();
        DataFile { name, bytes, blake3, object, delta }
    }
}

/// Removes, from the objects that are known, those of earlier generations whose contents a job has
/// uploaded again: a task has found that they are missing or damaged.
pub(super) fn forget_replaced(
    stored: &mut StoredObjects,
    manifest: &Manifest,
    shards: &[UploadedShard],
) {
    for shard in shards.iter().filter(|shard| !shard.is_reused) {
        let file = shard.data_file();
        if stored.has(&file) {
            stored.forget_others(manifest, &file);
        }
    }
}
