//! Building of a file from an earlier one and the deltas that lead to it.

use super::read::{DeltaReader, Row};
use crate::error::{Error, Result};
use blake3::Hash;
use nuthatch_snapshot::{OnDuplicate, Scratch, Snapshot, Writer};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of entries between two checks whether the build is cancelled.
const ENTRIES_PER_CHECK: usize = 4_096;
/// Number of rows of a delta between two such checks. Rows can have 16 MiB.
const ROWS_PER_CHECK: usize = 64;
/// Memory of a removed key besides its bytes.
const KEY_OVERHEAD: usize = 32;

/// The limits of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) threads: usize,
    pub(crate) memory: usize,
    /// Maximum length of all keys and values that are added, without compression. It also limits
    /// the temporary files.
    pub(crate) entry_bytes: u64,
}

/// A build of a file from an earlier one.
pub(crate) struct Rebuild<'a> {
    /// The earlier file.
    pub(crate) base: &'a Path,
    /// The deltas that lead from it to the new file, the newest one first.
    pub(crate) deltas: &'a [PathBuf],
    pub(crate) limits: Limits,
    /// The hash of the earlier file.
    pub(crate) from: Hash,
    /// The hash that the new file must have.
    pub(crate) to: Hash,
    /// Set by the caller when the result is no longer needed.
    pub(crate) cancelled: &'a AtomicBool,
}

impl Rebuild<'_> {
    /// Builds the file, syncs it, and compares its hash.
    pub(crate) fn run(&self, to: &Path) -> Result<()> {
        let (newest, older) = self.deltas.split_first().expect("a delta");
        let newest = DeltaReader::open(newest)?;
        let parameters = newest.header.parameters;
        if parameters.revision() != newest.header.revision {
            return Err(self.unexpected(
                "a delta of the same version of the writer and of zstd",
                "one of another version",
            ));
        }
        let base = Snapshot::open(self.base)?;
        let stats = base.stats();
        let base_bytes = stats.key_bytes.saturating_add(stats.value_bytes);
        self.check_room(base_bytes, to)?;
        let options = parameters.options().on_duplicate(OnDuplicate::First);
        let Limits { threads, memory, entry_bytes } = self.limits;
        // Removed keys take the other half.
        let mut writer = options.threads(threads).memory(memory / 2).create(to)?;
        for (name, value) in &newest.metadata {
            writer.set_metadata(name, value)?;
        }
        let mut rows = Rows { writer, room: entry_bytes - base_bytes };
        let removed = self.add_deltas(newest, older, &mut rows)?;
        self.add_base(&base, &removed, &mut rows.writer)?;
        self.check_cancelled()?;
        rows.writer.finish()?;
        self.check_hash(to)
    }

    /// Fails if the keys and values of the earlier file exceed the limit, or if there is no room on
    /// the disk for them and the new file.
    fn check_room(&self, base_bytes: u64, to: &Path) -> Result<()> {
        let limit = self.limits.entry_bytes;
        if base_bytes > limit {
            let expected = format!("keys and values of at most {limit} bytes without compression");
            return Err(self.unexpected(&expected, &format!("{base_bytes} bytes")));
        }
        let folder = to.parent().unwrap_or(to);
        let failed = |e: rustix::io::Errno| Error::io(folder, "stat", e.into());
        let found = rustix::fs::statvfs(folder).map_err(failed)?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let base_len = std::fs::metadata(self.base).map_or(0, |found| found.len());
        let needed = base_bytes.saturating_add(base_len);
        if free < needed {
            let expected = format!("{needed} bytes of free disk space for a build");
            return Err(self.unexpected(&expected, &format!("{free} bytes")));
        }
        Ok(())
    }

    fn check_hash(&self, to: &Path) -> Result<()> {
        let failed = |e| Error::io(to, "read", e);
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(to).map_err(failed)?).map_err(failed)?;
        let found = hasher.finalize();
        if found == self.to {
            return Ok(());
        }
        let _ = std::fs::remove_file(to);
        Err(self.unexpected(&format!("a file with the hash {}", self.to), &found.to_string()))
    }

    /// Adds the rows of all deltas, those of the newest one first: the writer keeps the first row
    /// of a key. Returns the keys that the new file does not have.
    fn add_deltas(
        &self,
        newest: DeltaReader,
        older: &[PathBuf],
        rows: &mut Rows,
    ) -> Result<HashSet<Box<[u8]>>> {
        let mut removed = Removed { keys: HashSet::new(), room: self.limits.memory / 2 };
        let (mut current, mut older, mut expected) = (newest, older.iter(), self.to);
        loop {
            if current.header.to != expected {
                let found = format!("one to {}", current.header.to);
                return Err(self.unexpected(&format!("a delta to {expected}"), &found));
            }
            expected = current.header.from;
            self.add_delta(&mut current, &mut removed, rows)?;
            let Some(path) = older.next() else { break };
            current = DeltaReader::open(path)?;
        }
        if expected != self.from {
            let expected_from = format!("a delta from {}", self.from);
            return Err(self.unexpected(&expected_from, &format!("one from {expected}")));
        }
        Ok(removed.keys)
    }

    /// Adds the entries of the earlier file whose keys were not removed.
    fn add_base(
        &self,
        base: &Snapshot,
        removed: &HashSet<Box<[u8]>>,
        writer: &mut Writer,
    ) -> Result<()> {
        let mut scratch = Scratch::new();
        for (number, entry) in base.iter_verified()?.enumerate() {
            if number.is_multiple_of(ENTRIES_PER_CHECK) {
                self.check_cancelled()?;
            }
            let entry = entry?;
            if !removed.contains(entry.key) {
                writer.insert(entry.key, entry.value.decompress(&mut scratch)?)?;
            }
        }
        Ok(base.check_readable()?)
    }

    fn add_delta(
        &self,
        delta: &mut DeltaReader,
        removed: &mut Removed,
        rows: &mut Rows,
    ) -> Result<()> {
        let mut number = 0_usize;
        while let Some(row) = delta.next_row()? {
            if number.is_multiple_of(ROWS_PER_CHECK) {
                self.check_cancelled()?;
            }
            number += 1;
            match row {
                Row::Put(key, value, len) if rows.take(len) => {
                    // A removed one counts, too: it took time and memory to read it.
                    if !removed.keys.contains(key) {
                        rows.writer.insert(key, value)?;
                    }
                }
                Row::Put(..) => {
                    let limit = self.limits.entry_bytes;
                    let expected = format!("keys and values of at most {limit} bytes");
                    return Err(self.unexpected(&expected, "more"));
                }
                Row::Removed(key) if removed.add(key) => {}
                Row::Removed(_) => {
                    return Err(self.unexpected("removed keys that fit into memory", "more"));
                }
            }
        }
        Ok(())
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(self.unexpected("a result that is needed", "a follower that has stopped"));
        }
        Ok(())
    }

    fn unexpected(&self, expected: &str, found: &str) -> Error {
        Error::Contents {
            place: self.deltas[0].display().to_string(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }
}

/// The rows that were added, within a limit.
struct Rows {
    writer: Writer,
    room: u64,
}

impl Rows {
    /// Takes the room of a row. Returns whether there was room.
    fn take(&mut self, len: u64) -> bool {
        let has_room = len <= self.room;
        if has_room {
            self.room -= len;
        }
        has_room
    }
}

/// The keys that newer deltas have removed, within a memory budget.
struct Removed {
    keys: HashSet<Box<[u8]>>,
    room: usize,
}

impl Removed {
    /// Adds a key. Returns whether there was room.
    fn add(&mut self, key: &[u8]) -> bool {
        let needed = key.len() + KEY_OVERHEAD;
        if needed > self.room {
            return false;
        }
        self.room -= needed;
        self.keys.insert(key.into());
        true
    }
}
