//! A damaged leaf: every call that reads it reports the damage.

use super::served::{Served, TABLE, code, is, key, served};
use nuthatch_rpc::{Error, Scan};
use nuthatch_store::Range;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

const ROWS: u32 = 2000;
const PAGE: usize = 4096;

/// Overwrites the bounds of the free space, four bytes, in the leaf that has a row.
fn damage_leaf_of(served: &Served, row: u32) {
    let path = served.store.path().join("data.mdb");
    let bytes = fs::read(&path).expect("the file");
    let key = key(row);
    let is_leaf = |page: &&[u8]| page[10] == 2 && page.windows(key.len()).any(|part| part == key);
    let leaf = bytes.chunks(PAGE).position(|page| is_leaf(&page)).expect("its leaf");
    let file = File::options().write(true).open(&path).expect("the file");
    file.write_all_at(&[0xFF; 4], (leaf * PAGE + 12) as u64).expect("four bytes");
}

/// Reads a scan to its end. Returns the number of rows.
fn read(served: &Served, scan: &Scan) -> Result<usize, Error> {
    let mut stream = served.client.scan(TABLE, scan);
    served.wait(async move {
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            rows += batch?.len();
        }
        Ok(rows)
    })
}

fn back_up(served: &Served, compact: bool) -> Result<usize, Error> {
    served.wait(async {
        let mut stream = served.client.backup(compact).await?;
        let mut bytes = 0;
        while let Some(part) = stream.next().await {
            bytes += part?.len();
        }
        Ok(bytes)
    })
}

#[test]
fn every_call_that_reads_a_damaged_leaf_reports_the_damage() {
    let served = served();
    served.fill(ROWS, 20);
    let scans = || {
        let (all, some) = (Scan::all(), Scan::new(Range::all().from(key(1)).to(key(ROWS - 2))));
        [all.clone(), all.clone().reverse(), all.keys_only(), some.clone(), some.reverse()]
    };
    for scan in scans() {
        assert!(read(&served, &scan).expect("a whole store") > ROWS as usize - 4);
    }
    let middle = key(ROWS / 2);
    damage_leaf_of(&served, ROWS / 2);

    let corrupt = is("corrupt", 15);
    for scan in scans() {
        assert_eq!(code(read(&served, &scan)), corrupt, "{scan:?}");
    }
    let client = &served.client;
    assert_eq!(code(served.wait(client.get(TABLE, &middle))), corrupt, "get");
    assert_eq!(code(served.wait(client.entry(TABLE, &middle))), corrupt, "entry");
    let keys = [key(0), middle.clone()];
    assert_eq!(code(served.wait(client.get_many(TABLE, &keys))), corrupt, "get_many");
    let part = Range::all().from(key(1));
    assert_eq!(code(served.wait(client.count(TABLE, &part))), corrupt, "count");
    for compact in [false, true] {
        assert_eq!(code(back_up(&served, compact)), corrupt, "backup, compact: {compact}");
    }
    assert_eq!(code(served.wait(client.put(TABLE, &middle, b"x"))), corrupt, "put");
    assert_eq!(code(served.wait(client.delete(TABLE, &middle))), corrupt, "delete");
    let mut txn = served.wait(client.txn()).expect("a transaction");
    assert_eq!(code(served.wait(txn.get(TABLE, &middle))), corrupt, "get of a transaction");
    // The server continues, and rows of other leaves can be read.
    let first = served.wait(client.get(TABLE, &key(0))).expect("a row of another leaf");
    assert_eq!(first.as_deref(), Some(&[b'v'; 20][..]));
}
