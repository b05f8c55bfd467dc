//! The temporary folder of one run.

use crate::Result;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A temporary folder, removed with its contents on drop.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with a unique name.
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

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error is ignored: the results are valid, and the user can remove the folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the total size of the files in a folder, in bytes.
pub(crate) fn file_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
