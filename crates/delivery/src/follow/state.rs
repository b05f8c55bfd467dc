//! The state of a follower's folder: which generation it has.

use super::folder_name::folder_name;
use crate::manifest::{DataFile, Generation, timestamps};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The generation in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The highest serial number of a manifest that was seen.
    pub(super) serial: u64,
    pub(super) generation: u64,
    #[serde(with = "timestamps")]
    pub(super) created: SystemTime,
    /// The name that programs open.
    pub(super) name: String,
    /// The folder with the files.
    pub(super) folder: String,
    files: Vec<StoredFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredFile {
    name: String,
    bytes: u64,
    blake3: String,
}

/// Returns whether a file has contents with this hash.
fn has_hash(path: &Path, blake3: &str) -> bool {
    let mut hasher = blake3::Hasher::new();
    let found = std::fs::File::open(path).and_then(|mut file| {
        hasher.update_reader(&mut file)?;
        Ok(hasher.finalize().to_hex())
    });
    found.is_ok_and(|found| found.as_str() == blake3)
}

impl State {
    pub(super) fn of(serial: u64, generation: &Generation) -> Self {
        let files = generation.files.iter().map(|file| StoredFile {
            name: file.name.clone(),
            bytes: file.bytes,
            blake3: file.blake3.clone(),
        });
        Self {
            serial,
            generation: generation.id,
            created: generation.created,
            name: generation.name().to_owned(),
            folder: folder_name(generation),
            files: files.collect(),
        }
    }

    /// Returns whether this is the state with a generation.
    pub(super) fn is_of(&self, generation: &Generation) -> bool {
        self.generation == generation.id && self.folder == folder_name(generation)
    }

    /// Returns whether the folder has all files with their lengths.
    pub(super) fn is_complete(&self, folder: &Path) -> bool {
        self.files.iter().all(|file| {
            std::fs::metadata(folder.join(&file.name)).is_ok_and(|found| found.len() == file.bytes)
        })
    }

    /// Returns whether the folder has all files with their contents.
    pub(super) fn is_valid(&self, folder: &Path) -> bool {
        self.is_complete(folder)
            && self.files.iter().all(|file| has_hash(&folder.join(&file.name), &file.blake3))
    }

    /// Returns the path of a file with the same contents, if it is there and not damaged.
    pub(super) fn find(&self, wanted: &DataFile, folder: &Path) -> Option<PathBuf> {
        let same = |file: &&StoredFile| file.blake3 == wanted.blake3 && file.bytes == wanted.bytes;
        let path = self.files.iter().find(same).map(|file| folder.join(&file.name))?;
        has_hash(&path, &wanted.blake3).then_some(path)
    }
}
