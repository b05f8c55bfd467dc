//! Several processes: killed while they write, writing at once, and other programs on the files.

mod child;
mod copies;
mod crashes;
mod damage;
mod damage_read;
mod foreign;
mod forks;
mod interop;
mod paths;
mod replaced;
mod room;
mod together;

use nuthatch_store::{Options, Store, verify_closed};
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder for a store that processes share. It is verified when the test ends.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for the test"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("store")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn open(&self, options: &Options) -> Store {
        Store::open(self.path(), options).expect("a store")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.path().exists() {
            verify_closed(&self.path(), |_, _| ()).expect("a store without damage");
        }
    }
}
