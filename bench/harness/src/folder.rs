//! The folder of one run's files.

use crate::Result;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A new folder, removed with all that is in it when this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder that no other run has.
    pub fn create(parent: &Path) -> Result<Self> {
        for number in 0_u32.. {
            let path = parent.join(format!("nuthatch-bench-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", path.display()).into()),
            }
        }
        Err("no name is left for a folder".into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the user's to see; the figures are right all the same.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes of the files in a folder.
pub(crate) fn file_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
