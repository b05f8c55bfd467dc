//! Tests of batch writers and watches.

mod batches;
mod panics;
#[path = "../waiting/mod.rs"]
mod waiting;
mod watches;

use nuthatch_store::{Options, Store};
use tempfile::TempDir;

pub(crate) struct Case {
    pub(crate) store: Store,
    pub(crate) folder: TempDir,
}

impl Case {
    pub(crate) fn new() -> Self {
        Self::with(&Options::new())
    }

    pub(crate) fn with(options: &Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let store = Store::open(folder.path().join("store"), options).expect("a store");
        Self { store, folder }
    }
}
