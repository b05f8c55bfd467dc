//! A snapshot that is complete, but not published yet.

use super::Summary;
use super::publish::NewFile;
use super::shard_files::{NewShards, Replaced};
use super::shards_lock::ShardsLock;
use crate::error::Result;
use std::path::Path;

/// A snapshot from [`Writer::stage`](crate::Writer::stage): complete, synced and readable under a
/// temporary name. Dropping it removes it.
#[derive(Debug)]
pub struct Staged {
    /// Of a set. Released first: its own shards can be removed then.
    pub(super) lock: Option<ShardsLock>,
    pub(super) file: NewFile,
    pub(super) replaced: Replaced,
    pub(super) new: Option<NewShards>,
    pub(super) summary: Summary,
}

impl Staged {
    /// Returns the path under which the snapshot can be read until it is published.
    pub fn path(&self) -> &Path {
        self.file.temporary_path().unwrap_or(self.file.path())
    }

    /// Returns the counts of the build.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Publishes the snapshot at its path, as [`Writer::finish`](crate::Writer::finish) does.
    ///
    /// # Errors
    /// Returns [`Error::Io`](crate::Error::Io), or
    /// [`Error::NotDurable`](crate::Error::NotDurable) if the snapshot is published but a power
    /// failure may restore the old one.
    pub fn publish(self) -> Result<Summary> {
        let Self { file, replaced, new, summary, lock } = self;
        let published = file.publish_staged();
        drop(lock);
        let is_set = new.is_some();
        // If the new manifest is published, it refers to the new shards, which stay.
        drop(new);
        published?;
        if is_set {
            replaced.remove_with_orphans();
        } else {
            replaced.remove();
        }
        Ok(summary)
    }
}
