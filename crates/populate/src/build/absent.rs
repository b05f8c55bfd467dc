//! The keys of values that are NULL, for incremental jobs: on disk while sources are read, then in
//! memory if they are few, otherwise in a temporary snapshot.

use crate::error::{Error, Result};
use nuthatch_snapshot::{OnDuplicate, Snapshot, Staged, Value, WriterOptions};
use std::collections::HashSet;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Maximum memory of the keys of one reader, in bytes.
const MAX_READER_BYTES: usize = 256 << 10;
/// Maximum memory of the keys when they are looked up, in bytes. The threads that read sources have
/// ended by then, and each of them has had more.
const MAX_MEMORY: usize = 8 << 20;
/// Memory of a build of the temporary snapshot, in bytes.
const BUILD_MEMORY: usize = 16 << 20;
/// Maximum length of a key of a snapshot in bytes.
const MAX_KEY_LEN: usize = 65_535;
/// Approximate memory of a key in a set besides its bytes.
const KEY_OVERHEAD: usize = 48;

/// Keys that a reader has found since it has passed on others.
#[derive(Debug, Default)]
pub(crate) struct KeySet {
    keys: HashSet<Vec<u8>>,
    bytes: usize,
}

impl KeySet {
    /// Adds a key. One that is too long for a snapshot is in no generation.
    pub(super) fn insert(&mut self, key: &[u8]) {
        if key.len() <= MAX_KEY_LEN && self.keys.insert(key.to_vec()) {
            self.bytes += key.len() + KEY_OVERHEAD;
        }
    }

    /// Returns whether the keys must be passed on.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MAX_READER_BYTES
    }

    /// Adds the keys of another set.
    pub(super) fn append(&mut self, other: &Self) {
        other.keys.iter().for_each(|key| self.insert(key));
    }
}

/// The keys of all readers, in a file without a name in the folder of the output, after symbolic
/// links.
#[derive(Debug)]
pub(crate) struct AbsentKeys {
    output: PathBuf,
    file: Option<BufWriter<File>>,
    /// Memory that a set of the keys would take, those that were added twice included.
    memory: usize,
}

impl AbsentKeys {
    /// Returns an empty collection for the build of a file.
    pub(crate) fn new(output: &Path) -> Self {
        Self { output: output.to_owned(), file: None, memory: 0 }
    }

    /// Adds keys, and empties their set.
    ///
    /// # Errors
    /// Returns [`Error::System`] if the disk fails, and [`Error::Snapshot`] if the path of the
    /// output has too many symbolic links.
    pub(crate) fn add(&mut self, keys: &mut KeySet) -> Result<()> {
        let KeySet { keys, bytes } = std::mem::take(keys);
        if keys.is_empty() {
            return Ok(());
        }
        let folder = &WriterOptions::folder_of(&self.output)?;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let created = tempfile::tempfile_in(folder).map_err(|e| failed(folder, e))?;
                none.insert(BufWriter::new(created))
            }
        };
        for key in keys {
            let len = (key.len() as u32).to_le_bytes();
            file.write_all(&len)
                .and_then(|()| file.write_all(&key))
                .map_err(|e| failed(folder, e))?;
        }
        self.memory = self.memory.saturating_add(bytes);
        Ok(())
    }

    /// Returns the keys for lookups.
    ///
    /// # Errors
    /// Returns [`Error::System`] if the disk fails, and [`Error::Snapshot`] if the temporary
    /// snapshot cannot be built.
    pub(crate) fn finish(self) -> Result<FoundAbsent> {
        self.finish_within(MAX_MEMORY)
    }

    fn finish_within(self, max_memory: usize) -> Result<FoundAbsent> {
        let Self { output, file, memory } = self;
        let Some(file) = file else { return Ok(FoundAbsent::Few(HashSet::new())) };
        let failed = |e: &dyn Display| failed(&output, e);
        let mut file = file.into_inner().map_err(|e| failed(&e))?;
        file.seek(SeekFrom::Start(0)).map_err(|e| failed(&e))?;
        let mut keys = StoredKeys { file: BufReader::new(file), key: Vec::new() };
        if memory <= max_memory {
            let mut few = HashSet::new();
            while let Some(key) = keys.next().map_err(|e| failed(&e))? {
                few.insert(key.to_vec());
            }
            return Ok(FoundAbsent::Few(few));
        }
        let options = WriterOptions::new().memory(BUILD_MEMORY).on_duplicate(OnDuplicate::First);
        // Never published: it has only a temporary name.
        let mut writer = options.create(&output)?;
        while let Some(key) = keys.next().map_err(|e| failed(&e))? {
            writer.insert(key, Value::Bool(true))?;
        }
        let staged = writer.stage()?;
        let snapshot = Box::new(Snapshot::open(staged.path())?);
        Ok(FoundAbsent::Many { snapshot, _staged: Box::new(staged) })
    }
}

/// The keys in the order in which they were stored.
struct StoredKeys {
    file: BufReader<File>,
    key: Vec<u8>,
}

impl StoredKeys {
    fn next(&mut self) -> std::io::Result<Option<&[u8]>> {
        let mut len = [0; 4];
        if self.file.read(&mut len[..1])? == 0 {
            return Ok(None);
        }
        self.file.read_exact(&mut len[1..])?;
        self.key.resize(u32::from_le_bytes(len) as usize, 0);
        self.file.read_exact(&mut self.key)?;
        Ok(Some(&self.key))
    }
}

/// The keys of all sources, for lookups.
pub(crate) enum FoundAbsent {
    Few(HashSet<Vec<u8>>),
    /// In a temporary snapshot, which is removed when this is dropped.
    Many {
        snapshot: Box<Snapshot>,
        _staged: Box<Staged>,
    },
}

impl FoundAbsent {
    /// Returns whether a key has a value that is NULL.
    ///
    /// # Errors
    /// Returns [`Error::Snapshot`] if the temporary snapshot is damaged.
    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        match self {
            Self::Few(keys) => Ok(keys.contains(key)),
            Self::Many { snapshot, .. } => Ok(snapshot.get(key)?.is_some()),
        }
    }
}

fn failed(place: &Path, error: impl Display) -> Error {
    Error::System(format!("{}: temporary file of NULL keys: {error}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::{AbsentKeys, FoundAbsent, KeySet};

    #[test]
    fn keys_beyond_the_memory_are_found_in_a_temporary_snapshot_that_leaves_no_file() {
        for (max_memory, is_few) in [(8 << 20, true), (100, false)] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut keys = AbsentKeys::new(&folder.path().join("users.nut"));
            for batch in 0..3 {
                // The sets of readers overlap.
                let mut set = KeySet::default();
                (batch * 50..batch * 50 + 100).for_each(|key: i32| set.insert(&key.to_le_bytes()));
                keys.add(&mut set).expect("stored");
                assert!(set.keys.is_empty());
            }
            let found = keys.finish_within(max_memory).expect("keys");
            assert_eq!(matches!(found, FoundAbsent::Few(_)), is_few);
            let contains = |key: i32| found.contains(&key.to_le_bytes()).expect("a lookup");
            assert!((0..200).all(contains) && !contains(-1) && !contains(200));
            drop(found);
            assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
        }
    }

    /// The folder of the link may not be writable, and root can write to a folder of any mode: the
    /// error of a folder that does not exist shows which one is used.
    #[test]
    fn the_keys_are_stored_in_the_folder_to_which_a_link_leads() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("users.nut");
        let elsewhere = folder.path().join("elsewhere");
        std::os::unix::fs::symlink("elsewhere/users.nut", &link).expect("a link");
        let mut set = KeySet::default();
        set.insert(b"key");
        let mut keys = AbsentKeys::new(&link);
        let error = keys.add(&mut set).expect_err("no folder").to_string();
        assert!(error.contains(&elsewhere.display().to_string()), "{error}");
        std::fs::create_dir(&elsewhere).expect("a folder");
        set.insert(b"key");
        keys.add(&mut set).expect("stored");
        assert!(keys.finish().expect("keys").contains(b"key").expect("a lookup"));
    }

    #[test]
    fn a_reader_passes_its_keys_on_before_they_take_much_memory() {
        let (mut set, mut keys) = (KeySet::default(), 0_u64);
        while !set.is_full() {
            set.insert(&keys.to_le_bytes());
            keys += 1;
        }
        assert!((1_000..6_000).contains(&keys), "{keys}");
        let folder = tempfile::tempdir().expect("a folder");
        let mut all = AbsentKeys::new(&folder.path().join("users.nut"));
        assert!(!all.finish_within(0).expect("no keys").contains(b"key").expect("a lookup"));
        all = AbsentKeys::new(&folder.path().join("users.nut"));
        all.add(&mut set).expect("stored");
        assert!(!set.is_full());
    }
}
