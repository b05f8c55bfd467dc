//! Other LMDB 0.9 programs open files of the store, and the store opens theirs.

use crate::Place;
use nuthatch_store::{Kind, Options, Range, Read};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn lmdb(program: &str, arguments: &[&str], store: &Path, input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .arg(store)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{program} is needed: scripts/packages lmdb-utils: {e}"));
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success(), "{program} {arguments:?}: {}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn lmdb_reads_what_this_wrote() {
    let place = Place::new();
    {
        let store = place.open(&Options::new());
        let plain = store.table("plain").expect("a table");
        let stamped = store.table_of("stamped", Kind::Stamped).expect("a table");
        store.put(&plain, b"a", b"1").expect("a put");
        store.put(&plain, b"b", b"2").expect("a put");
        store.put(&stamped, b"c", b"3").expect("a put");
    }
    let stat = lmdb("mdb_stat", &["-e", "-a"], &place.path(), "");
    assert!(stat.contains("Status of plain") && stat.contains("Entries: 2"), "{stat}");
    let dump = lmdb("mdb_dump", &["-p", "-s", "plain"], &place.path(), "");
    assert!(dump.contains(" a\n 1\n b\n 2\nDATA=END"), "{dump}");
    let dump = lmdb("mdb_dump", &["-s", "stamped"], &place.path(), "");
    let row = format!(" 63\n 01{}{}33\n", "00".repeat(7), "00".repeat(8));
    assert!(dump.contains(&row), "{dump}");
}

#[test]
fn this_reads_and_goes_on_with_what_lmdb_wrote() {
    let place = Place::new();
    std::fs::create_dir(place.path()).expect("a folder");
    let rows =
        "VERSION=3\nformat=print\ntype=btree\nHEADER=END\n k1\n main\n k2\n \\00\nDATA=END\n";
    lmdb("mdb_load", &[], &place.path(), rows);
    let named = rows.replace("type=btree", "database=users\ntype=btree").replace("main", "named");
    lmdb("mdb_load", &["-s", "users"], &place.path(), &named);
    {
        let store = place.open(&Options::new());
        let (main, users) = (store.main_table(), store.table("users").expect("the table"));
        assert_eq!(store.get(&main, b"k1").expect("a get"), Some(b"main".to_vec()));
        assert_eq!(store.get(&users, b"k1").expect("a get"), Some(b"named".to_vec()));
        assert_eq!(store.get(&users, b"k2").expect("a get"), Some(b"\0".to_vec()));
        assert_eq!(store.table_names().expect("names"), ["users"]);
        store.put(&users, b"k3", b"ours").expect("a put");
        store.put(&main, b"k3", b"ours").expect("a put");
        store.keep_changes(10, 1000).expect("changes are kept");
        store.verify(|_, _| ()).expect("no damage");
        let txn = store.read().expect("a transaction");
        assert_eq!(txn.count(&users, &Range::all()).expect("a count"), 3);
    }
    let dump = lmdb("mdb_dump", &["-p", "-s", "users"], &place.path(), "");
    assert!(dump.contains(" k1\n named\n k2\n \\00\n k3\n ours\nDATA=END"), "{dump}");
}

#[test]
fn tables_that_are_not_ordered_keys_and_values_are_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path()).expect("a folder");
    let rows = "VERSION=3\nformat=print\ndatabase=d\ntype=btree\ndupsort=1\nHEADER=END\n \
                k\n 1\n k\n 2\nDATA=END\n";
    lmdb("mdb_load", &["-s", "d"], &place.path(), &rows.replace("\n  k", "\n k"));
    let store = place.open(&Options::new());
    let error = store.table("d").expect_err("several values for a key");
    assert!(error.to_string().contains("several values for a key"), "{error}");
    let found = store.verify(|_, _| ()).expect("no damage");
    assert_eq!(found.entries, 2);
}

/// LMDB 0.9.36 adds pages of the trees of duplicates to the counts of the table.
#[test]
fn counts_of_pages_of_a_table_with_duplicates_are_not_damage() {
    const ENTRIES: u64 = 400;
    let place = Place::new();
    std::fs::create_dir(place.path()).expect("a folder");
    let mut rows =
        "VERSION=3\nformat=print\ndatabase=d\ntype=btree\ndupsort=1\nHEADER=END\n".to_owned();
    for number in 0..ENTRIES {
        let row = [format!(" k{}\n {number:06}", number % 2), "x".repeat(300), "\n".to_owned()];
        rows.push_str(&row.concat());
    }
    lmdb("mdb_load", &["-s", "d"], &place.path(), &(rows + "DATA=END\n"));
    let data = place.path().join("data.mdb");
    let mut bytes = std::fs::read(&data).expect("its bytes");
    // The record of the table: padding, flags, depth, branch and leaf pages, overflow pages, rows.
    let is_record = |at: &usize| {
        let flags = u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]);
        flags == 4 && bytes[at + 32..at + 40] == ENTRIES.to_le_bytes()
    };
    let record = (8192..bytes.len() - 48).find(is_record).expect("the record");
    bytes[record + 8] += 2;
    bytes[record + 16] += 30;
    std::fs::write(&data, bytes).expect("the file");
    let store = place.open(&Options::new());
    assert_eq!(store.verify(|_, _| ()).expect("no damage").entries, ENTRIES);
    store.backup(place.beside("copy"), false).expect("a backup");
}
