//! The watched path or generations, and the identity of files.

use super::generations::Generations;
use crate::error::{Error, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A source of generations.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A path at which files are replaced.
    Path(PathBuf),
    /// Numbered files with a pointer to the latest.
    Generations(Generations),
}

/// The identity of a file, to detect that another file has its path. It includes the times and the
/// length, because the system can reuse an inode number after its file is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Source {
    /// Returns the path and the identity of the newest generation.
    pub(super) fn latest(&self) -> Result<(PathBuf, Identity)> {
        let path = match self {
            Self::Path(path) => path.clone(),
            Self::Generations(generations) => match generations.latest()? {
                Some(number) => generations.path(number),
                None => generations.pointer(),
            },
        };
        let identity = identity(&path)?;
        Ok((path, identity))
    }
}

fn identity(path: &Path) -> Result<Identity> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "stat", e))?;
    Ok(Identity {
        path: path.to_owned(),
        device: metadata.dev(),
        inode: metadata.ino(),
        len: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}
