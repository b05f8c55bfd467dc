//! The generations that are kept, and the removal of objects that none of them needs.

use crate::destination::Destination;
use crate::error::Result;
use crate::manifest::Manifest;
use std::time::{Duration, SystemTime};

/// Age at which an object that no manifest names is removed. Younger ones may belong to a publisher
/// that is uploading.
const ORPHAN_AGE: Duration = Duration::from_hours(24);

/// Which generations are kept. The current one always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of generations, at least one; 10 by default.
    pub generations: usize,
    /// Maximum age of a generation. `None`, the default, is for any age.
    pub age: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { generations: 10, age: None }
    }
}

impl Retention {
    /// Removes generations from a manifest. Returns their numbers.
    pub(super) fn apply(&self, manifest: &mut Manifest, now: SystemTime) -> Vec<u64> {
        let surplus = manifest.generations.len().saturating_sub(self.generations.max(1));
        let current = manifest.current;
        let (mut at, mut removed) = (0, Vec::new());
        manifest.generations.retain(|generation| {
            let is_surplus = at < surplus;
            at += 1;
            // A clock that was set back makes a generation young, not old.
            let age = now.duration_since(generation.created).unwrap_or_default();
            let is_old = self.age.is_some_and(|max| age > max);
            let is_kept = generation.id == current || !(is_surplus || is_old);
            if !is_kept {
                removed.push(generation.id);
            }
            is_kept
        });
        removed
    }
}

/// Removes the objects that the old manifest named and the new one does not, and old objects that
/// no manifest names.
pub(super) async fn remove_objects(
    destination: &Destination,
    old: Option<&Manifest>,
    new: &Manifest,
    now: SystemTime,
) -> Result<()> {
    let needed = new.objects();
    let dropped = old.map(Manifest::objects).unwrap_or_default();
    for object in dropped.difference(&needed) {
        destination.remove(object).await?;
    }
    for object in destination.objects().await? {
        let age = now.duration_since(object.modified).unwrap_or_default();
        if age > ORPHAN_AGE && !needed.contains(object.name.as_str()) {
            destination.remove(&object.name).await?;
        }
    }
    Ok(())
}
