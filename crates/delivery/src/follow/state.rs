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

    /// Returns the path of a file with the same contents, if it is there.
    pub(super) fn find(&self, wanted: &DataFile, folder: &Path) -> Option<PathBuf> {
        let same = |file: &&StoredFile| file.blake3 == wanted.blake3 && file.bytes == wanted.bytes;
        let path = self.files.iter().find(same).map(|file| folder.join(&file.name))?;
        let found = std::fs::metadata(&path).ok()?;
        (found.len() == wanted.bytes).then_some(path)
    }
}
