//! The generations that are kept, and the removal of objects that none of them needs.

use crate::destination::Destination;
use crate::error::Result;
use crate::manifest::Manifest;
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
    /// Removes generations from a manifest. Returns their numbers.
    pub(super) fn apply(&self, manifest: &mut Manifest, now: SystemTime) -> Vec<u64> {
        let current = manifest.current;
        // The current one is kept, and as many of the newest others as there is room for.
        let others = manifest.generations.iter().filter(|found| found.id != current).count();
        let surplus = others.saturating_sub(self.max_generations.saturating_sub(1));
        let (mut at, mut removed) = (0, Vec::new());
        manifest.generations.retain(|generation| {
            if generation.id == current {
                return true;
            }
            let is_surplus = at < surplus;
            at += 1;
            // A clock that was set back makes a generation young, not old.
            let age = now.duration_since(generation.created).unwrap_or_default();
            let is_old = self.max_age.is_some_and(|max| age > max);
            let is_kept = !(is_surplus || is_old);
            if !is_kept {
                removed.push(generation.id);
            }
            is_kept
        });
        removed
    }
}

/// Removes the objects that the old manifest named and the new one does not, and old objects that
/// no manifest names. If one cannot be removed, the others are. Returns the first failure.
pub(super) async fn remove_objects(
    destination: &Destination,
    old: Option<&Manifest>,
    new: &Manifest,
) -> Result<()> {
    let needed = new.objects();
    let dropped = old.map(Manifest::objects).unwrap_or_default();
    let mut surplus: Vec<String> =
        dropped.difference(&needed).map(|name| (*name).to_owned()).collect();
    let listed = destination.objects().await?;
    // The time of the newest object is by the clock of the store; this machine may have another.
    let now = listed.iter().map(|object| object.modified).max();
    for object in listed {
        let age = now.and_then(|now| now.duration_since(object.modified).ok()).unwrap_or_default();
        let name = object.name;
        if age > ORPHAN_AGE && !needed.contains(name.as_str()) && !dropped.contains(name.as_str()) {
            surplus.push(name);
        }
    }
    let mut result = Ok(());
    for name in surplus {
        result = result.and(destination.remove(&name).await);
    }
    result
}
