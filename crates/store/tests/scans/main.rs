//! Tests of scans in batches: on the caller's thread, as streams, and by several threads.

mod batches;
mod leaves;
mod parallel;
mod streams;
#[path = "../waiting/mod.rs"]
mod waiting;

use nuthatch_store::{Options, Store, Table};
use tempfile::TempDir;

/// Number of rows, enough for several pages and batches.
pub(crate) const ROWS: u32 = 20_000;

pub(crate) struct Case {
    pub(crate) store: Store,
    pub(crate) table: Table,
    _folder: TempDir,
}

pub(crate) fn key(n: u32) -> Vec<u8> {
    format!("key{n:08}").into_bytes()
}

/// Some values are long, with overflow pages.
pub(crate) fn value(n: u32) -> Vec<u8> {
    if n % 1000 == 7 { vec![n as u8; 20_000] } else { format!("value of {n}").into_bytes() }
}

impl Case {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let store = Store::open(folder.path().join("store"), &Options::new()).expect("a store");
        let table = store.table("rows").expect("a table");
        store
            .update(|txn| (0..ROWS).try_for_each(|n| txn.append(&table, &key(n), &value(n))))
            .expect("rows");
        Self { store, table, _folder: folder }
    }

    pub(crate) fn open_transactions(&self) -> u64 {
        self.store.stat().expect("figures").open_transactions
    }
}
