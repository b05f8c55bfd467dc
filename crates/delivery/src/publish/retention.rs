//! The generations that are kept, and the removal of objects that none of them needs.

use super::stored::StoredObjects;
use crate::destination::Destination;
use crate::error::Result;
use crate::manifest::Manifest;
use std::collections::HashSet;
use std::time::{Duration, SystemTime};

/// Age at which an object that no manifest names is removed. Younger ones may belong to a publisher
/// that is uploading.
const ORPHAN_AGE: Duration = Duration::from_hours(24);

/// The limits of the generations that are kept. The current one always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of generations, at least one; 10 by default.
    pub max_generations: usize,
    /// Maximum age of a generation. `None`, the default, is for any age.
    pub max_age: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { max_generations: 10, max_age: None }
    }
}

impl Retention {
    /// Removes generations from a manifest.
    pub(super) fn apply(&self, manifest: &mut Manifest, now: SystemTime) {
        let current = manifest.current;
        // The current one is kept, and as many of the newest others as there is room for.
        let others = manifest.generations.iter().filter(|found| found.id != current).count();
        let surplus = others.saturating_sub(self.max_generations.saturating_sub(1));
        let mut at = 0;
        manifest.generations.retain(|generation| {
            if generation.id == current {
                return true;
            }
            let is_surplus = at < surplus;
            at += 1;
            // A clock that was set back makes a generation young, not old.
            let age = now.duration_since(generation.created).unwrap_or_default();
            let is_old = self.max_age.is_some_and(|max| age > max);
            !(is_surplus || is_old)
        });
    }
}

/// Removes the objects that the old manifest named and the new one does not, and old objects that
/// no manifest names. If one cannot be removed, the others are. Returns the first failure.
pub(super) async fn remove_objects(
    destination: &Destination,
    stored: &StoredObjects,
    (old, new): (Option<&Manifest>, &Manifest),
    now: SystemTime,
) -> Result<()> {
    let needed = new.objects();
    let dropped = old.map(Manifest::objects).unwrap_or_default();
    let orphans = stored.older_than(ORPHAN_AGE, now).filter(|name| !needed.contains(name));
    let surplus: HashSet<_> = dropped.difference(&needed).copied().chain(orphans).collect();
    let mut result = Ok(());
    for name in surplus {
        result = result.and(destination.remove(name).await);
    }
    result
}
