//! Every kind of read reports damage: none returns wrong rows or misses a key.

use crate::Place;
use nuthatch_store::{
    Error, Options, Parallel, Range, Read, Result, Scan, Store, Table, compact, verify_closed,
};
use std::cell::Cell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

pub(crate) const ROWS: u32 = 2000;
pub(crate) const PAGE: u64 = 4096;

pub(crate) fn key(n: u32) -> Vec<u8> {
    format!("key{n:08}").into_bytes()
}

pub(crate) fn value(n: u32) -> Vec<u8> {
    if n % 500 == 7 { vec![n as u8; 9000] } else { format!("value of {n}").into_bytes() }
}

/// A store with a table of three levels, which is not verified at the end.
pub(crate) struct Case {
    pub(crate) place: Place,
    store: Option<Store>,
    pub(crate) file: File,
}

impl Case {
    pub(crate) fn new() -> Self {
        let place = Place::new();
        let folder = place.beside("damaged");
        let store = Store::open(&folder, &Options::new()).expect("a store");
        let table = store.table("rows").expect("a table");
        store
            .update(|txn| (0..ROWS).try_for_each(|n| txn.put(&table, &key(n), &value(n))))
            .expect("rows");
        let data = folder.join("data.mdb");
        let file = File::options().read(true).write(true).open(data).expect("the file");
        Self { place, store: Some(store), file }
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("an open store")
    }

    pub(crate) fn table(&self) -> Table {
        self.store().table("rows").expect("a table")
    }

    pub(crate) fn byte(&self, at: u64) -> u8 {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, at).expect("a byte");
        byte[0]
    }

    /// Returns the offset of the middle slot of a page, which has the offset of an entry.
    pub(crate) fn middle_slot(&self, at: u64) -> u64 {
        at + 16 + (self.short(at + 12) - 16) / 4 * 2
    }

    pub(crate) fn short(&self, at: u64) -> u64 {
        u64::from(self.byte(at)) | u64::from(self.byte(at + 1)) << 8
    }

    /// Returns the pages of the table: their offsets, and whether they are branches. Leaves out
    /// meta pages, the page of the main table, overflow pages and free pages.
    pub(crate) fn pages(&self) -> Vec<(u64, bool)> {
        let pages = self.file.metadata().expect("its length").len() / PAGE;
        let kinds = (2..pages).map(|page| (page * PAGE, self.byte(page * PAGE + 10)));
        let kinds = kinds.filter(|(at, kind)| match kind {
            1 => true,
            2 => {
                let first = at + self.short(at + 16);
                let mut found = [0; 3];
                self.file.read_exact_at(&mut found, first + 8).expect("a key");
                self.byte(first + 6) == 11 && found == *b"key"
            }
            _ => false,
        });
        kinds.map(|(at, kind)| (at, kind == 1)).collect()
    }

    /// Overwrites bytes, calls `operation`, and restores the bytes.
    pub(crate) fn with<R>(&self, at: u64, bytes: &[u8], operation: impl FnOnce() -> R) -> R {
        let mut before = vec![0; bytes.len()];
        self.file.read_exact_at(&mut before, at).expect("bytes");
        self.file.write_all_at(bytes, at).expect("bytes");
        let result = operation();
        self.file.write_all_at(&before, at).expect("bytes");
        result
    }
}

pub(crate) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

pub(crate) fn collect<'r>(
    rows: impl Iterator<Item = Result<(&'r [u8], &'r [u8])>>,
) -> Result<Rows> {
    rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

/// Returns the rows in order, by every kind of scan.
fn scans(store: &Store, table: &Table) -> Vec<(&'static str, Result<Rows>)> {
    let txn = || store.read();
    let all = Scan::all();
    let bounded = Scan::new(Range::all().from(key(0)).to(key(ROWS)));
    let sorted = |rows: Result<Rows>| {
        rows.map(|mut rows| {
            rows.sort();
            rows
        })
    };
    let forward = |scan: &Scan| collect(txn()?.scan(table, scan)?);
    let reverse = |scan: &Scan| sorted(collect(txn()?.scan(table, &scan.clone().reverse())?));
    let visit = |scan: &Scan| {
        let (txn, mut rows) = (txn()?, Rows::new());
        txn.scan(table, scan)?.visit(|key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            true
        })?;
        Ok(rows)
    };
    let batches = |scan: &Scan| {
        let batches = store.batches(table, scan).map(|batch| Ok(batch?.to_vec()));
        sorted(batches.collect::<Result<Vec<_>>>().map(|batches| batches.concat()))
    };
    let parallel = || {
        let copy = |(key, value): (&[u8], &[u8])| Some((key.to_vec(), value.to_vec()));
        let parts = store.scan_parallel(table, &all, &Parallel::split(2), copy)?;
        sorted(parts.collect::<Result<Vec<_>>>().map(|parts| parts.concat()))
    };
    vec![
        ("forward", forward(&all)),
        ("forward in a range", forward(&bounded)),
        ("reverse", reverse(&all)),
        ("reverse in a range", reverse(&bounded)),
        ("visit", visit(&all)),
        ("visit in a range", visit(&bounded)),
        ("batches", batches(&all)),
        ("batches in reverse", batches(&all.clone().reverse())),
        ("parallel", parallel()),
    ]
}

#[track_caller]
pub(crate) fn is_corrupt(what: &str, error: &Error) {
    assert_eq!(error.code(), "corrupt", "{what}: {error}");
    assert!(error.to_string().contains("data.mdb: at byte "), "{what}: {error}");
}

/// Checks that every scan fails, and that each lookup returns the right value or an error.
fn check_damaged(case: &Case, what: &str) {
    let (store, table) = (case.store(), case.table());
    for (way, rows) in scans(store, &table) {
        let what = format!("{what}, {way}");
        match rows {
            Err(error) => is_corrupt(&what, &error),
            Ok(rows) => panic!("{what}: {} rows and no error", rows.len()),
        }
    }
    let txn = store.read().expect("a transaction");
    let mut errors = 0;
    for n in 0..ROWS {
        match txn.get(&table, &key(n)) {
            Ok(found) => assert_eq!(found, Some(&value(n)[..]), "{what}, key {n}"),
            Err(error) => {
                is_corrupt(what, &error);
                errors += 1;
            }
        }
    }
    assert!(errors > 0, "{what}: every key was found");
    let keys: Vec<_> = (0..ROWS).map(key).collect();
    is_corrupt(what, &txn.get_many(&table, &keys).expect_err("a key is in the damaged page"));
    let range = Range::all().from(key(0));
    is_corrupt(what, &txn.count(&table, &range).expect_err("a count of rows that are read"));
}

/// Returns bytes that damage a page, with a description and their offset.
pub(crate) fn damages(case: &Case, at: u64, is_branch: bool) -> Vec<(&'static str, u64, Vec<u8>)> {
    let middle = case.middle_slot(at);
    let entry = at + case.short(middle);
    let mut damages = vec![
        ("its number", at, vec![0xEE, 0xEE]),
        ("its kind", at + 10, vec![4, 0]),
        ("where its free space begins", at + 12, vec![0xFF, 0xFF]),
        ("where its free space ends", at + 14, vec![8, 0]),
        ("where two entries are", middle, vec![0xF0, 0xF0, 0xF1, 0xF1]),
        ("the length of a key", entry + 6, vec![0xFF, 0x7F]),
    ];
    if is_branch {
        damages.push(("where an entry leads", entry, vec![0xEE, 0xEE, 0xEE, 0]));
    } else {
        damages.push(("the length of a value", entry, vec![0xFF, 0xFF, 0, 0]));
        damages.push(("the flags of a value", entry + 4, vec![0x40, 0]));
    }
    damages
}

#[test]
fn damage_to_a_page_is_an_error_for_every_way_to_read() {
    let case = Case::new();
    let table = case.table();
    for (way, rows) in scans(case.store(), &table) {
        assert_eq!(rows.expect(way).len(), ROWS as usize, "{way}");
    }
    let pages = case.pages();
    assert!(pages.iter().filter(|(_, is_branch)| *is_branch).count() == 1, "two levels");
    // Tests some leaves at both ends and in the middle.
    let some = pages.iter().enumerate().filter(|(n, page)| page.1 || n % 7 == 0);
    for (_, &(at, is_branch)) in some {
        for (what, place, bytes) in damages(&case, at, is_branch) {
            let what = format!("page {}, {what}", at / PAGE);
            case.with(place, &bytes, || check_damaged(&case, &what));
        }
    }
}

#[test]
fn a_key_out_of_order_hides_no_other_key() {
    let case = Case::new();
    let table = case.table();
    for (at, is_branch) in case.pages() {
        let entries = (case.short(at + 12) - 16) / 2;
        // The first entry of a branch has no key.
        for index in [u64::from(is_branch), entries / 3, entries / 2, entries - 1] {
            let entry = at + case.short(at + 16 + 2 * index);
            let mut own = [0; 11];
            case.file.read_exact_at(&mut own, entry + 8).expect("a key");
            for first in [0, 0xFF] {
                case.with(entry + 8, &[first; 4], || {
                    let txn = case.store().read().expect("a transaction");
                    for n in (0..ROWS).filter(|n| n % 3 == 0) {
                        match txn.get(&table, &key(n)) {
                            // The changed key may still be in order.
                            Ok(None) if !is_branch && key(n) == own => {}
                            Ok(found) => assert_eq!(found, Some(&value(n)[..]), "page {at}, {n}"),
                            Err(error) => is_corrupt("a key", &error),
                        }
                    }
                    // The iterator compares all keys of a leaf.
                    let scanned = txn.scan(&table, &Scan::all()).and_then(collect);
                    let is_extreme = scanned.as_ref().is_ok_and(|rows| rows.is_sorted());
                    assert!(scanned.is_err() || is_extreme, "page {at}, entry {index}");
                });
            }
        }
    }
}

#[test]
fn a_damaged_store_is_neither_copied_nor_compacted() {
    let mut case = Case::new();
    let (leaf, _) = *case.pages().iter().find(|(_, is_branch)| !is_branch).expect("a leaf");
    case.file.write_all_at(&[0xF0; 4], leaf + 40).expect("bytes");
    let folder = case.place.beside("damaged");
    let before = fs::read(folder.join("data.mdb")).expect("its bytes");
    for small in [false, true] {
        let copy = case.place.beside(if small { "small" } else { "copy" });
        let error = case.store().backup(&copy, small).expect_err("damage");
        is_corrupt("backup", &error);
        assert!(!copy.join("data.mdb").exists(), "there is no copy");
        let pipe = File::create(case.place.beside("pipe")).expect("a file");
        is_corrupt("backup_to", &case.store().backup_to(&pipe, small).expect_err("damage"));
        assert_eq!(pipe.metadata().expect("its length").len(), 0, "nothing was sent");
    }
    drop(case.store.take());
    is_corrupt("compact", &compact(&folder).expect_err("damage"));
    assert_eq!(fs::read(folder.join("data.mdb")).expect("its bytes"), before);
    assert!(!folder.join("data.mdb.partial").exists());
}

#[test]
fn verify_and_backup_refuse_each_page_that_a_scan_refuses() {
    let case = Case::new();
    let table = case.table();
    let copy = case.place.beside("copy");
    let mut refused = 0;
    // The branch and two leaves: their headers, the offsets of entries, and the header of an entry.
    let pages = case.pages();
    let branch = pages.iter().find(|(_, is_branch)| *is_branch).expect("a branch");
    let leaves = pages.iter().filter(|(_, is_branch)| !is_branch);
    for &(at, _) in leaves.take(2).chain([branch]) {
        let entry = at + case.short(case.middle_slot(at));
        for (place, bit) in (at..at + 24).chain(entry..entry + 8).flat_map(each_bit) {
            case.with(place, &[case.byte(place) ^ bit], || {
                let scan = case.store().read().expect("a transaction");
                let Err(error) = scan.scan(&table, &Scan::all()).and_then(collect) else { return };
                let what = format!("bit {bit:#04x} of byte {} of page {}", place - at, at / PAGE);
                is_corrupt(&what, &error);
                let verified = case.store().verify(|_, _| ());
                is_corrupt(&what, &verified.expect_err(&what));
                is_corrupt(&what, &case.store().backup(&copy, true).expect_err(&what));
                refused += 1;
            });
        }
    }
    assert!(refused > 200, "a scan refused {refused} damages");
}

/// Returns a byte with each of its bits flipped in turn.
fn each_bit(place: u64) -> impl Iterator<Item = (u64, u8)> {
    (0..8).map(move |bit| (place, 1 << bit))
}

#[test]
fn an_empty_file_is_damage_and_never_a_new_store() {
    let place = Place::new();
    let folder = place.beside("damaged");
    fs::create_dir(&folder).expect("a folder");
    let data = folder.join("data.mdb");
    File::create(&data).expect("an empty file");
    let open = |options: &Options| Store::open(&folder, options).map(|_| ());
    for options in [Options::new(), Options::new().create(false), Options::new().read_only(true)] {
        is_corrupt("open", &open(&options).expect_err("an empty file"));
    }
    is_corrupt("verify", &verify_closed(&folder, |_, _| ()).expect_err("an empty file"));
    is_corrupt("compact", &compact(&folder).expect_err("an empty file"));
    assert_eq!(data.metadata().expect("its length").len(), 0, "nobody wrote to it");
}

/// Calls `check` for a store whose file was truncated to several lengths.
fn with_each_cut(mut case: Case, check: impl Fn(&Path, u64)) {
    drop(case.store.take());
    let folder = case.place.beside("damaged");
    let whole = fs::read(folder.join("data.mdb")).expect("its bytes");
    let pages = whole.len() as u64 / PAGE;
    for len in (0..pages).rev().step_by(3).map(|page| page * PAGE).chain([100, 5000, 70_000]) {
        fs::write(folder.join("data.mdb"), &whole[..len as usize]).expect("a file");
        check(&folder, len);
        let now = fs::read(folder.join("data.mdb")).expect("its bytes");
        assert!(now == whole[..len as usize], "cut at {len}: the file was changed");
    }
}

#[test]
fn a_file_that_was_cut_is_damage_for_every_reader() {
    with_each_cut(Case::new(), |folder, len| {
        assert!(verify_closed(folder, |_, _| ()).is_err(), "cut at {len}");
        let read = Store::open(folder, &Options::new().read_only(true)).and_then(|store| {
            let table = store.find_table("rows")?.expect("its table");
            let txn = store.read()?;
            (0..ROWS).try_for_each(|n| txn.get(&table, &key(n)).map(|_| ()))?;
            let scanned = scans(&store, &table);
            let errors = scanned.iter().filter(|(_, rows)| rows.is_err()).count();
            assert_eq!(errors, scanned.len(), "cut at {len}");
            Ok(())
        });
        let error = read.expect_err("a file without its last pages");
        assert!(matches!(error.code(), "corrupt" | "not-a-store"), "cut at {len}: {error}");
    });
}

/// Earlier, a put was committed if it needed none of the missing pages.
#[test]
fn a_file_that_was_cut_takes_no_writes() {
    let case = Case::new();
    // The last pages of the file become leaves. The roots move to free pages before them, which
    // were overflow pages.
    let (store, table) = (case.store(), case.table());
    for n in (7..ROWS).step_by(500) {
        assert!(store.delete(&table, &key(n)).expect("a delete"));
    }
    store
        .update(|txn| (ROWS..2 * ROWS).try_for_each(|n| txn.put(&table, &key(n), &value(n))))
        .expect("rows");
    for _ in 0..6 {
        store.put(&table, &key(0), b"again").expect("a put");
    }
    let cuts = Cell::new(0);
    with_each_cut(case, |folder, len| {
        // Only free pages are missing.
        if verify_closed(folder, |_, _| ()).is_ok() {
            return;
        }
        cuts.set(cuts.get() + 1);
        for n in [0, ROWS / 2, ROWS - 1] {
            let write = Store::open(folder, &Options::new())
                .and_then(|store| store.put(&store.table("rows")?, &key(n), b"written"));
            let error = write.expect_err("a file without its last pages");
            let is_damage = matches!(error.code(), "corrupt" | "not-a-store");
            assert!(is_damage, "cut at {len}, key {n}: {error}");
        }
    });
    assert!(cuts.get() > 10, "{} cuts are damage", cuts.get());
}

#[test]
fn a_file_that_ends_before_its_last_free_pages_takes_writes() {
    let place = Place::new();
    let (store, table) = place.open_rows();
    for _ in 0..6 {
        store.put(&table, &key(0), b"first").expect("a put");
    }
    store
        .update(|txn| {
            txn.put(&table, b"long", &vec![7; 90_000])?;
            txn.delete(&table, b"long").map(drop)
        })
        .expect("pages that are free before they are written");
    let stat = store.stat().expect("figures");
    assert!(stat.file_bytes < stat.used_bytes, "{stat:?}");
    assert!(store.close_within(Duration::from_mins(10)));
    let (store, table) = place.open_rows();
    assert_eq!(store.stat().expect("figures").file_bytes, stat.file_bytes);
    store.put(&table, &key(1), b"second").expect("a put");
    for (n, expected) in [(0, &b"first"[..]), (1, b"second")] {
        assert_eq!(store.get(&table, &key(n)).expect("a get").as_deref(), Some(expected));
    }
}
