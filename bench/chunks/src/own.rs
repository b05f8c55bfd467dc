//! Nuthatch, and what it alone can do.

use crate::clock::{Sheet, time};
use crate::works::{ENTRIES, MIB, Setting, System, drawn, payload};
use nuthatch_chunks::{Check, Chunks, Key, Lookup, Options};
use std::path::Path;

pub struct Nuthatch(Chunks);

fn key_of(key: u64) -> Key {
    let mut name = *b"object 0000000000000000";
    name[7..15].copy_from_slice(&key.to_le_bytes());
    Key::named(name).expect("a key")
}

impl System for Nuthatch {
    const NAME: &'static str = "nuthatch";

    fn open(folder: &Path, limit: u64) -> Self {
        Self(Chunks::open(folder, &Options::new().limit(limit)).expect("a cache"))
    }

    fn put(&self, key: u64, data: &[u8]) {
        let stored = self.0.put(&key_of(key), 0..1, &[0, data.len() as u64], data);
        assert_eq!(stored.expect("a put").not_kept, None);
    }

    fn get(&self, key: u64, out: &mut Vec<u8>) -> bool {
        matches!(self.0.get_into(&key_of(key), 0..1, out).expect("a get"), Lookup::Found(_))
    }
}

pub fn more(setting: &Setting, sheet: &mut Sheet) {
    let folder = setting.folder.join("more");
    let data = payload(64 * MIB);
    let mut out = vec![0; 8 * MIB];
    for check in [Check::Never, Check::Once, Check::Always] {
        let options = Options::new().limit(setting.limit).check(check);
        let chunks = Chunks::open(&folder, &options).expect("a cache");
        for key in 0..ENTRIES {
            chunks.put(&key_of(key), 0..1, &[0, MIB as u64], &data[..MIB]).expect("a put");
        }
        let hit = time(setting.rounds, 400, |round| {
            for number in 0..400 {
                let key = key_of(drawn(number + round));
                let found = chunks.get_into(&key, 0..1, &mut out).expect("a get");
                assert!(found.found().is_some());
            }
        });
        sheet.note(&format!("hit 1 MiB, check {check:?}"), "nuthatch", MIB, hit);
    }
    let chunks = Chunks::open(&folder, &Options::new().limit(setting.limit)).expect("a cache");
    for mib in [1, 8, 64] {
        let len = mib * MIB;
        let object = chunks.blocks(&format!("o{mib}"), "1", len as u64, MIB as u64).expect("one");
        object.put(0, &data[..len]).expect("a put");
        let view = time(setting.rounds, 2000, |_| {
            for _ in 0..2000 {
                let view = object.view(0..len as u64).expect("a view").found().expect("a hit");
                assert_eq!(std::hint::black_box(&view).len(), len as u64);
            }
        });
        sheet.note(&format!("view {mib} MiB"), "nuthatch", 0, view);
    }
    let object = chunks.blocks("spliced", "1", 8 * MIB as u64, MIB as u64).expect("an object");
    for block in [3, 1, 7, 0, 2, 6, 4, 5] {
        let range = block * MIB..(block + 1) * MIB;
        object.put(range.start as u64, &data[range]).expect("a put");
    }
    let spliced = time(setting.rounds, 50, |_| {
        for _ in 0..50 {
            let found = object.get_into(0..8 * MIB as u64, &mut out).expect("a get");
            assert!(found.found().is_some());
        }
    });
    sheet.note("hit 8 MiB of 8 puts", "nuthatch", 8 * MIB, spliced);
    let part = time(setting.rounds, 20_000, |round| {
        for number in 0..20_000 {
            let start = ((number + round) * 104_729 % (8 * MIB - 4096)) as u64;
            let found = object.get_into(start..start + 4096, &mut out[..4096]).expect("a get");
            assert!(found.found().is_some());
        }
    });
    sheet.note("sub-range 4 KiB", "nuthatch", 4096, part);
    let _ = std::fs::remove_dir_all(&folder);
}
