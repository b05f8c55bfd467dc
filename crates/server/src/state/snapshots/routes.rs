//! Finds the snapshot that a key belongs to, by its prefix.

use super::opening::{self, Ledger, OpenError, SnapshotMemory};
use super::served::{Served, SnapshotSource};
use nuthatch_cache::Cache;
use nuthatch_snapshot::Snapshot;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of snapshots of a server.
pub(super) const MAX_SNAPSHOTS: usize = 64;
/// Maximum bytes of a name.
const MAX_NAME_LEN: usize = 64;

/// The next value of [`Snapshots::id`].
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The snapshots of a server.
pub struct Snapshots {
    /// Identifies this object among all of the process, for the readers of each thread.
    pub(super) id: u64,
    /// By descending length of the prefix, so that the first match is the longest.
    pub(super) served: Vec<Served>,
    /// Bit `b` is set if a prefix begins with byte `b`.
    first_bytes: [u64; 4],
    /// Whether one prefix begins with another one.
    pub(super) has_nested: bool,
    /// The keys of the hashes by which `WATCH` compares values.
    pub(super) hasher: RandomState,
}

/// A key of a snapshot, without the prefix.
#[derive(Clone, Copy)]
pub(crate) struct SnapshotKey<'a> {
    pub(super) snapshots: &'a Snapshots,
    /// The number of the snapshot.
    pub(super) number: usize,
    pub(super) key: &'a [u8],
}

impl Snapshots {
    /// Opens all snapshots and watches their paths. Reads all their bytes.
    ///
    /// # Errors
    ///
    /// Fails if a name or prefix is invalid or occurs twice, or if a snapshot is missing, damaged
    /// or does not fit in memory.
    pub fn open(
        mut sources: Vec<SnapshotSource>,
        memory: SnapshotMemory,
    ) -> Result<Self, OpenError> {
        Self::check(&sources).map_err(OpenError::Invalid)?;
        sources.sort_by_key(|source| std::cmp::Reverse(source.prefix.len()));
        let mut first_bytes = [0; 4];
        for source in &sources {
            let first = source.prefix[0];
            first_bytes[usize::from(first >> 6)] |= 1 << (first & 63);
        }
        let has_nested = sources.iter().enumerate().any(|(number, longer)| {
            sources[number + 1..].iter().any(|other| longer.prefix.starts_with(&other.prefix))
        });
        let ledger = Ledger::new(memory, sources.len());
        let served = sources.into_iter().enumerate();
        let served = served.map(|(number, source)| opening::open(&ledger, number, source));
        let served = served.collect::<Result<_, _>>()?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, served, first_bytes, has_nested, hasher: RandomState::new() })
    }

    /// Checks the names and prefixes of snapshots.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found if a name or prefix is invalid or occurs twice, or if
    /// there are more than 64 snapshots.
    pub fn check(sources: &[SnapshotSource]) -> Result<(), String> {
        check(sources)
    }

    /// Returns the part of a key after the prefix of the snapshot that it belongs to, with that
    /// snapshot; `None` for a key of the cache.
    #[inline]
    pub(crate) fn key<'a>(&'a self, key: &'a [u8]) -> Option<SnapshotKey<'a>> {
        let first = *key.first()?;
        if self.first_bytes[usize::from(first >> 6)] >> (first & 63) & 1 == 0 {
            return None;
        }
        self.served.iter().enumerate().find_map(|(number, served)| {
            let key = key.strip_prefix(served.source.prefix.as_slice())?;
            Some(SnapshotKey { snapshots: self, number, key })
        })
    }

    /// Returns the number of entries of all snapshots.
    pub(crate) fn entries(&self) -> u64 {
        (0..self.served.len()).map(|number| self.with_last(number, Snapshot::len)).sum()
    }

    /// Sets the function that wakes all threads of the server, so that they take a new generation
    /// and the old one can be freed.
    pub(crate) fn wake_by(&self, wake: impl Fn() + Clone + Send + Sync + 'static) {
        for served in &self.served {
            served.wake_by(Box::new(wake.clone()));
        }
    }
}

impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.served.iter().map(|served| &served.source)).finish()
    }
}

/// Checks names and prefixes.
fn check(sources: &[SnapshotSource]) -> Result<(), String> {
    if sources.len() > MAX_SNAPSHOTS {
        return Err(format!("expected at most {MAX_SNAPSHOTS} snapshots, found {}", sources.len()));
    }
    for (number, SnapshotSource { name, prefix, .. }) in sources.iter().enumerate() {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME_LEN || !name.bytes().all(is_plain) {
            return Err(format!(
                "expected a name of 1 to {MAX_NAME_LEN} letters, digits, '_', '-' and '.', found \
                 {name:?}"
            ));
        }
        if prefix.is_empty() {
            return Err(format!("expected a prefix for snapshot {name}, found an empty one"));
        }
        if prefix.len() >= Cache::MAX_KEY_LEN {
            let (max, found) = (Cache::MAX_KEY_LEN - 1, prefix.len());
            return Err(format!(
                "expected a prefix of at most {max} bytes for snapshot {name}, found {found} bytes"
            ));
        }
        for other in &sources[..number] {
            if other.name == *name {
                return Err(format!("expected each snapshot once, found {name} again"));
            }
            if other.prefix == *prefix {
                let (prefix, other) = (prefix.escape_ascii(), &other.name);
                return Err(format!(
                    "expected a prefix of its own for each snapshot, found \"{prefix}\" for \
                     {other} and {name}"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, prefix: &str) -> SnapshotSource {
        SnapshotSource { name: name.into(), prefix: prefix.into(), path: name.into() }
    }

    #[test]
    fn names_and_prefixes_must_be_valid_and_unique() {
        let check = |sources: &[(&str, &str)]| {
            let sources: Vec<_> = sources.iter().map(|(name, key)| source(name, key)).collect();
            check(&sources)
        };
        assert_eq!(check(&[("a", "a:"), ("b", "a:b:")]), Ok(()), "the longest prefix counts");
        for wrong in [
            &[("", "a:")][..],
            &[("a b", "a:")],
            &[("a,b", "a:")],
            &[("a", "")],
            &[("a", "a:"), ("a", "b:")],
            &[("a", "x:"), ("b", "x:")],
        ] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
        let many: Vec<_> = (0..=MAX_SNAPSHOTS).map(|n| format!("s{n}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), name.as_str())).collect();
        assert!(check(&many).is_err() && check(&many[1..]).is_ok());
    }
}
