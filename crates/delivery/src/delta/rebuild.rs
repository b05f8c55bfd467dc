//! Building of a file from an earlier one and the deltas that lead to it.

use super::read::{DeltaReader, Row};
use crate::error::{Error, Result};
use nuthatch_snapshot::{OnDuplicate, Scratch, Snapshot, Writer};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of entries between two checks whether the build is cancelled.
const ENTRIES_PER_CHECK: usize = 4_096;
/// Memory of a removed key besides its bytes.
const KEY_OVERHEAD: usize = 32;

/// The limits of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) threads: usize,
    pub(crate) memory: usize,
}

/// A build of a file from an earlier one.
pub(crate) struct Rebuild<'a> {
    /// The earlier file.
    pub(crate) base: &'a Path,
    /// The deltas that lead from it to the new file, the newest one first.
    pub(crate) deltas: &'a [PathBuf],
    pub(crate) limits: Limits,
    /// Set by the caller when the result is no longer needed.
    pub(crate) cancelled: &'a AtomicBool,
}

impl Rebuild<'_> {
    /// Builds the file, syncs it, and compares its hash with that of the newest delta.
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
        let options = parameters.options().on_duplicate(OnDuplicate::First);
        let Limits { threads, memory } = self.limits;
        // Removed keys take the other half.
        let mut writer = options.threads(threads).memory(memory / 2).create(to)?;
        for (name, value) in &newest.metadata {
            writer.set_metadata(name, value)?;
        }
        let expected = newest.header.to;
        self.add_rows(newest, older, &mut writer)?;
        self.check_cancelled()?;
        writer.finish()?;
        let failed = |e| Error::io(to, "read", e);
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(to).map_err(failed)?).map_err(failed)?;
        let found = hasher.finalize();
        if found == expected {
            return Ok(());
        }
        let _ = std::fs::remove_file(to);
        Err(self.unexpected(&format!("a file with the hash {expected}"), &found.to_string()))
    }

    /// Adds the rows of all deltas and those of the earlier file. The writer keeps the first row of
    /// a key, which is the newest.
    fn add_rows(&self, newest: DeltaReader, older: &[PathBuf], writer: &mut Writer) -> Result<()> {
        let mut removed = Removed { keys: HashSet::new(), room: self.limits.memory / 2 };
        let mut current = newest;
        let mut older = older.iter();
        loop {
            self.add_delta(&mut current, &mut removed, writer)?;
            let Some(path) = older.next() else { break };
            let next = DeltaReader::open(path)?;
            if next.header.to != current.header.from {
                return Err(self.unexpected("deltas that follow each other", "others"));
            }
            current = next;
        }
        let base = Snapshot::open(self.base)?;
        let mut scratch = Scratch::new();
        for (number, entry) in base.iter_verified()?.enumerate() {
            if number.is_multiple_of(ENTRIES_PER_CHECK) {
                self.check_cancelled()?;
            }
            let entry = entry?;
            if !removed.keys.contains(entry.key) {
                writer.insert(entry.key, entry.value.decompress(&mut scratch)?)?;
            }
        }
        Ok(base.check_readable()?)
    }

    fn add_delta(
        &self,
        delta: &mut DeltaReader,
        removed: &mut Removed,
        writer: &mut Writer,
    ) -> Result<()> {
        let mut number = 0_usize;
        while let Some(row) = delta.next_row()? {
            if number.is_multiple_of(ENTRIES_PER_CHECK) {
                self.check_cancelled()?;
            }
            number += 1;
            match row {
                Row::Put(key, _) if removed.keys.contains(key) => {}
                Row::Put(key, value) => writer.insert(key, value)?,
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
