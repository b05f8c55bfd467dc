//! Tests with several processes: killed during writes, concurrent writes, and other LMDB programs.

mod child;
mod copies;
mod crashes;
mod damage;
mod damage_read;
mod damage_write;
mod foreign;
mod forks;
mod interop;
mod paths;
mod removed;
mod room;
mod together;
#[cfg(feature = "sigbus")]
mod truncated;

use nuthatch_store::{Options, Store, Table, compact, verify_closed};
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

    /// Opens the store, and its table `rows`.
    pub(crate) fn open_rows(&self) -> (Store, Table) {
        let store = self.open(&Options::new());
        let table = store.table("rows").expect("a table");
        (store, table)
    }

    /// Checks that the store is not compacted while another process, which printed `form`, has it
    /// open.
    #[track_caller]
    pub(crate) fn assert_in_use(&self, form: &str) {
        let error = compact(self.path()).expect_err("it is open elsewhere");
        assert_eq!(error.code(), "in-use", "{form}: {error}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.path().exists() {
            verify_closed(&self.path(), |_, _| ()).expect("a store without damage");
        }
    }
}
