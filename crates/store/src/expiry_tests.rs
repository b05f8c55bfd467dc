use crate::codec::integers::key_of;
use crate::{Condition, Error, Kind, Options, Range, Store, Table};
use heed::{RoTxn, WithoutTls};
use tempfile::TempDir;

/// A time after the tests end, in milliseconds since 1970.
const FAR: u64 = 1 << 50;

struct Case {
    store: Store,
    table: Table,
    _folder: TempDir,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let store = Store::open(folder.path().join("store"), &Options::new()).expect("a store");
        let table = store.table_of("sessions", Kind::Stamped).expect("a table");
        Self { store, table, _folder: folder }
    }

    fn put_until(&self, key: &[u8], expires_at_ms: u64) {
        let put =
            |txn: &mut crate::WriteTxn<'_>| txn.put_until(&self.table, key, b"v", expires_at_ms);
        self.store.update(put).expect("a put");
    }

    /// Returns the number of entries in the expiry table.
    fn entries(&self) -> u64 {
        let shared = &self.store.0;
        let (txn, _guard) = shared.environment.read().expect("a transaction");
        let txn: &RoTxn<'_, WithoutTls> = &txn;
        shared.system_tables().expect("open").expect("settings").expiry.len(txn).expect("a length")
    }
}

#[test]
fn refreshing_a_time_of_expiry_leaves_one_entry() {
    let case = Case::new();
    for n in 0..100 {
        case.put_until(b"session", FAR + n);
    }
    case.put_until(b"other", FAR);
    assert_eq!(case.entries(), 2);
    // Also within one transaction, and in a nested one.
    case.store
        .update(|txn| {
            (0..100).try_for_each(|n| txn.put_until(&case.table, b"session", b"v", FAR + n))?;
            let mut nested = txn.nested()?;
            nested.put_until(&case.table, b"session", b"v", FAR + 7)?;
            nested.commit().map(|_| ())
        })
        .expect("an update");
    assert_eq!(case.entries(), 2);
}

#[test]
fn a_row_without_a_time_of_expiry_any_more_has_no_entry() {
    let case = Case::new();
    for key in [&b"put"[..], b"put if", b"deleted", b"deleted if", b"in a range"] {
        case.put_until(key, FAR);
    }
    assert_eq!(case.entries(), 5);
    case.store.put(&case.table, b"put", b"for ever").expect("a put");
    assert_eq!(case.entries(), 4);
    case.store
        .update(|txn| txn.put_if(&case.table, b"put if", b"for ever", Condition::Present))
        .expect("a put");
    assert_eq!(case.entries(), 3);
    assert!(case.store.delete(&case.table, b"deleted").expect("a delete"));
    assert_eq!(case.entries(), 2);
    case.store
        .update(|txn| txn.delete_if(&case.table, b"deleted if", Condition::Equals(b"v")))
        .expect("a delete");
    assert_eq!(case.entries(), 1);
    case.store.update(|txn| txn.delete_range(&case.table, &Range::all())).expect("a delete");
    assert_eq!(case.entries(), 0);
}

#[test]
fn an_expired_row_that_is_written_or_deleted_has_no_entry_left_behind() {
    let case = Case::new();
    // In one transaction, since a commit would sweep expired rows.
    case.store
        .update(|txn| {
            txn.put_until(&case.table, b"overwritten", b"v", 1)?;
            txn.put_until(&case.table, b"deleted", b"v", 1)?;
            txn.put_until(&case.table, b"overwritten", b"v", FAR)?;
            assert!(!txn.delete(&case.table, b"deleted")?, "it has expired");
            let (_, heed, journal) = txn.parts();
            let entries =
                journal.system_tables().expect("settings").expiry.len(heed).expect("a length");
            assert_eq!(entries, 1);
            Ok::<_, Error>(())
        })
        .expect("an update");
    assert_eq!(case.entries(), 1);
}

#[test]
fn an_update_that_is_aborted_keeps_the_entry() {
    let case = Case::new();
    case.put_until(b"session", FAR);
    let mut txn = case.store.write().expect("a transaction");
    txn.put(&case.table, b"session", b"for ever").expect("a put");
    txn.delete(&case.table, b"session").expect("a delete");
    txn.abort();
    assert_eq!(case.entries(), 1);
}

#[test]
fn entries_that_earlier_versions_left_behind_are_removed_when_they_expire() {
    let case = Case::new();
    case.put_until(b"session", FAR);
    // What a refresh left behind: entries of versions that the row no longer has.
    case.store
        .update(|txn| {
            let (_, heed, journal) = txn.parts();
            let system_tables = journal.system_tables().expect("settings");
            for version in 1000..1010_u64 {
                let time = [key_of(1), key_of(version)].concat();
                let place = [&[8][..], b"sessions", b"session"].concat();
                system_tables.expiry.put(heed, &time, &place).expect("an entry");
            }
            Ok::<_, Error>(())
        })
        .expect("an update");
    case.store.sweep().expect("a sweep");
    assert_eq!(case.entries(), 1);
    assert_eq!(case.store.get(&case.table, b"session").expect("a get"), Some(b"v".to_vec()));
}
