//! Tests of tables, lookups, ranges and transactions in one thread.

mod model;
mod ranges;
mod tables;
mod transactions;

use nuthatch_store::{Error, Options, Store, verify_closed};
use tempfile::TempDir;

/// A store in a temporary folder. It is verified when the test ends.
pub(crate) struct Case {
    pub(crate) store: Store,
    _folder: TempDir,
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // A store that the test closed is verified from its files.
        let verified = match self.store.verify(|_, _| ()) {
            Err(Error::Closed) => verify_closed(self.store.path(), |_, _| ()),
            verified => verified,
        };
        verified.expect("a store without damage");
    }
}

impl Case {
    pub(crate) fn new() -> Self {
        Self::with(&Options::new())
    }

    pub(crate) fn with(options: &Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let store = Store::open(folder.path().join("store"), options).expect("a store");
        Self { store, _folder: folder }
    }
}
