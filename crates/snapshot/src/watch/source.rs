//! Where new generations come from, and how they are told apart.

use super::generations::Generations;
use crate::error::{Error, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is watched.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Path(PathBuf),
    Generations(Generations),
}

/// What tells one file from another that had the same path before. An inode number can come back
/// after its file is gone, so the times and the length count too.
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
    /// The newest generation's file.
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
