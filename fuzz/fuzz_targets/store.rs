//! Modifies the file of a store. LMDB trusts its files, so a file that passes verification must be
//! safe to read and write.
#![no_main]

use libfuzzer_sys::{arbitrary, arbitrary::Arbitrary, fuzz_target};
use nuthatch_store::{Kind, Options, Range, Read, Scan, Store, verify_closed};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

/// The name of the data file in the folder of a store.
const DATA: &str = "data.mdb";

/// A modification, either at any offset or in the header and pointers of a page.
#[derive(Debug, Arbitrary)]
enum Patch {
    Head { page: u8, at: u8, value: u16 },
    Byte { at: u32, value: u8 },
    Word { at: u32, value: u64 },
    Cut { at: u32 },
}

/// A file with tables of both kinds, branch pages, long values, recorded changes and free pages.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let store = open(folder.path()).expect("a store");
    store.keep_changes(8, 4096).expect("changes are kept");
    for (name, kind) in [("plain", Kind::Plain), ("stamped", Kind::Stamped)] {
        let table = store.table_of(name, kind).expect("a table");
        store
            .update(|txn| {
                (0..120_u8).try_for_each(|n| txn.put(&table, &[n; 24], &[n; 60]))?;
                txn.put(&table, b"long", &[7; 9000])?;
                txn.delete_range(&table, &Range::all().before([20]))
            })
            .expect("rows");
    }
    drop(store);
    fs::read(folder.path().join(DATA)).expect("its bytes")
});

fn open(folder: &Path) -> nuthatch_store::Result<Store> {
    Store::open(folder, &Options::new().reserve(1 << 24).limit(1 << 24).threads(1))
}

fn patched(patches: &[Patch]) -> Vec<u8> {
    let mut bytes = WHOLE.clone();
    let len = bytes.len();
    for patch in patches {
        let (at, value) = match *patch {
            Patch::Head { page, at, value } => (
                usize::from(page) * 4096 + usize::from(at),
                u64::from(value).to_le_bytes()[..2].to_vec(),
            ),
            Patch::Byte { at, value } => (at as usize, vec![value]),
            Patch::Word { at, value } => (at as usize, value.to_le_bytes().to_vec()),
            Patch::Cut { at } => {
                bytes.truncate(at as usize % len);
                continue;
            }
        };
        let at = at % len;
        for (place, byte) in bytes.iter_mut().skip(at).zip(value) {
            *place = byte;
        }
    }
    bytes
}

fn use_all(store: &Store) -> nuthatch_store::Result<()> {
    let txn = store.read()?;
    let mut rows = 0_u64;
    for name in store.table_names()? {
        let Some(table) = store.find_table(&name)? else { continue };
        for scan in [Scan::all(), Scan::all().reverse()] {
            for row in txn.scan(&table, &scan)? {
                let (key, value) = row?;
                rows +=
                    u64::from(key.iter().chain(value).fold(0, |sum: u8, b| sum.wrapping_add(*b)));
            }
        }
    }
    drop(txn);
    std::hint::black_box(rows);
    if let Some(table) = store.find_table("plain")? {
        store.put(&table, b"new", &[1; 5000])?;
        store.update(|txn| txn.delete_range(&table, &Range::all().before([90])))?;
    }
    Ok(())
}

fuzz_target!(|patches: Vec<Patch>| {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join(DATA), patched(&patches)).expect("a file");
    if verify_closed(folder.path(), |_, _| ()).is_ok() {
        // The modified tables may have other names and kinds, so errors are allowed.
        let _ = open(folder.path()).and_then(|store| use_all(&store));
    }
});
