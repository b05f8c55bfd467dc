//! A second path to a store.

use crate::file_names::DATA;
use crate::file_names::LOCKS;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of symbolic links to the files of a store, which exists while the store is opened.
pub(crate) struct Links(PathBuf);

impl Links {
    /// Creates links to the files of the store in a folder, whether the files exist or not.
    pub(crate) fn to(folder: &Path) -> io::Result<Self> {
        // In the folder of the store if no other folder is writable.
        let mut made = Err(ErrorKind::NotFound.into());
        for parent in [&std::env::temp_dir(), folder] {
            made = Self::within(parent, folder);
            if made.is_ok() {
                break;
            }
        }
        made
    }

    fn within(parent: &Path, folder: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let links = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("nuthatch-store-{}-{number}", std::process::id());
            let path = std::path::absolute(parent.join(name))?;
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break Self(path),
                // A dead process with the same ID left it behind.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        };
        for name in [DATA, LOCKS] {
            symlink(folder.join(name), links.0.join(name))?;
        }
        Ok(links)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        for name in [DATA, LOCKS] {
            let _ = std::fs::remove_file(self.0.join(name));
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}
