//! The objects that a destination has, whatever its manifest says.

use crate::destination::{Destination, StoredObject};
use crate::error::Result;
use crate::manifest::{DataFile, Delta, Manifest};
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::time::{Duration, SystemTime};

/// The objects of a destination by name, at the beginning of a publication.
pub(super) struct StoredObjects {
    objects: HashMap<String, StoredObject>,
    /// The names of those that the manifest had then.
    named: HashSet<String>,
}

impl StoredObjects {
    /// Lists the objects of a destination that has this manifest.
    pub(super) async fn list(destination: &Destination, old: Option<&Manifest>) -> Result<Self> {
        let objects = destination.objects().await?;
        let objects = objects.into_iter().map(|object| (object.name.clone(), object)).collect();
        let named = old.map(Manifest::objects).unwrap_or_default();
        Ok(Self { objects, named: named.into_iter().map(str::to_owned).collect() })
    }

    /// Returns whether the manifest names an object. No other publisher can be removing it then,
    /// unless it has replaced the manifest.
    pub(super) fn is_named(&self, object: &str) -> bool {
        self.named.contains(object)
    }

    /// Returns whether there is the object of a file, with its length.
    pub(super) fn has(&self, file: &DataFile) -> bool {
        self.bytes_of(&file.object) == Some(file.bytes)
    }

    /// Returns whether there is the object of a delta, with its length.
    pub(super) fn has_delta(&self, delta: &Delta) -> bool {
        self.bytes_of(&delta.object) == Some(delta.bytes)
    }

    /// Returns the length of an object, if it exists.
    pub(super) fn bytes_of(&self, object: &str) -> Option<u64> {
        Some(self.objects.get(object)?.bytes)
    }

    /// Reads objects of earlier generations that would be used again, up to a total length, and
    /// forgets those whose contents have another hash, so that they are uploaded again. It begins
    /// with a random file, so that publications read different ones, also of the same contents.
    /// Returns why objects could not be read; they are used again by their length.
    pub(super) async fn forget_damaged(
        &mut self,
        destination: &Destination,
        (manifest, files): (&Manifest, &[DataFile]),
        limit: u64,
    ) -> Vec<String> {
        let (mut rest, mut unread) = (limit, Vec::new());
        let first = RandomState::new().hash_one(0) as usize % files.len();
        for file in files[first..].iter().chain(&files[..first]) {
            for known in manifest.files_with(&file.blake3, file.bytes) {
                if !self.has(known) || known.bytes > rest {
                    continue;
                }
                rest -= known.bytes;
                match destination.object_is(known).await {
                    Ok(true) => break,
                    Ok(false) => drop(self.objects.remove(&known.object)),
                    Err(error) => {
                        unread.push(error.to_string());
                        break;
                    }
                }
            }
        }
        unread
    }

    /// Removes the other objects with the contents of a file from those that are known.
    pub(super) fn forget_others(&mut self, manifest: &Manifest, file: &DataFile) {
        for known in manifest.files_with(&file.blake3, file.bytes) {
            if known.object != file.object {
                self.objects.remove(&known.object);
            }
        }
    }

    /// Returns the names of objects that are older than the newest one by more than this, and older
    /// than `now` by more than this. Their times are by the clock of the store; this machine may
    /// have another, and a wrong clock may have made an object of the future.
    pub(super) fn older_than(&self, age: Duration, now: SystemTime) -> impl Iterator<Item = &str> {
        let newest = self.objects.values().map(|object| object.modified).max();
        let newest = newest.map_or(now, |newest| newest.min(now));
        let is_old = move |object: &&StoredObject| {
            newest.duration_since(object.modified).is_ok_and(|found| found > age)
        };
        self.objects.values().filter(is_old).map(|object| object.name.as_str())
    }
}
