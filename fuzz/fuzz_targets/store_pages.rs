//! Modifies the pages of a store, without verification. Read transactions check the pages that they
//! use, so every read returns rows or an error and never crashes.
#![no_main]

use libfuzzer_sys::{arbitrary, arbitrary::Arbitrary, fuzz_target};
use nuthatch_store::{Options, Range, Read, Result, Scan, Store, Table};
use std::fs;
use std::sync::LazyLock;
use tempfile::TempDir;

const DATA: &str = "data.mdb";
const PAGE: usize = 4096;
const ROWS: u16 = 600;

/// A modification of a page, either in its header and offsets or anywhere.
#[derive(Debug, Arbitrary)]
enum Patch {
    Head { page: u8, at: u8, value: u16 },
    Byte { page: u8, at: u16, value: u8 },
    Word { page: u8, at: u16, value: u64 },
    Cut { page: u8 },
}

/// A file with branch pages, leaf pages and long values.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let store = Store::open(folder.path(), &Options::new()).expect("a store");
    let table = store.table("rows").expect("a table");
    store
        .update(|txn| {
            (0..ROWS).try_for_each(|n| {
                let len = if n % 97 == 5 { 9000 } else { usize::from(n % 60) };
                txn.put(&table, &n.to_be_bytes(), &vec![n as u8; len])
            })
        })
        .expect("rows");
    drop(store);
    fs::read(folder.path().join(DATA)).expect("its bytes")
});

fn patched(patches: &[Patch]) -> Vec<u8> {
    let mut bytes = WHOLE.clone();
    for patch in patches {
        let (page, at, value) = match *patch {
            Patch::Head { page, at, value } => (page, at.into(), value.to_le_bytes().to_vec()),
            Patch::Byte { page, at, value } => (page, usize::from(at) % PAGE, vec![value]),
            Patch::Word { page, at, value } => {
                (page, usize::from(at) % PAGE, value.to_le_bytes().to_vec())
            }
            Patch::Cut { page } => {
                bytes.truncate((2 + usize::from(page)) * PAGE);
                continue;
            }
        };
        // Opening a store checks the first two pages. Another target covers these.
        let start = (2 + usize::from(page)) * PAGE + at;
        for (place, byte) in bytes.iter_mut().skip(start).zip(value) {
            *place = byte;
        }
    }
    bytes
}

/// Reads the table in every way, and adds the bytes to `sum`. Errors are allowed.
fn read_all(store: &Store, table: &Table, sum: &mut u64) -> Vec<Result<()>> {
    let mut add = |bytes: &[u8]| *sum += bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let mut results = Vec::new();
    for scan in [Scan::all(), Scan::new(Range::all().from([0, 40]).before([2]))] {
        for scan in [scan.clone(), scan.reverse()] {
            results.push(store.read().and_then(|txn| {
                txn.scan(table, &scan)?.try_for_each(|row| row.map(|(_, value)| add(value)))
            }));
            results.push(store.read().and_then(|txn| {
                let visited = txn.scan(table, &scan)?.visit(|_, value| {
                    add(value);
                    true
                });
                visited.map(|_| ())
            }));
        }
    }
    results.push(store.read().and_then(|txn| {
        (0..ROWS).step_by(7).try_for_each(|n| {
            txn.get(table, &n.to_be_bytes())?.into_iter().for_each(&mut add);
            txn.get(table, &[&n.to_be_bytes()[..], &[1]].concat()).map(|_| ())
        })
    }));
    results
}

fuzz_target!(|patches: Vec<Patch>| {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join(DATA), patched(&patches)).expect("a file");
    let options = Options::new().reserve(1 << 24).read_only(true).threads(1);
    let mut sum = 0;
    let read = Store::open(folder.path(), &options).and_then(|store| {
        let table = store.find_table("rows")?;
        Ok(table.map(|table| read_all(&store, &table, &mut sum)))
    });
    std::hint::black_box((read.is_ok(), sum));
});
