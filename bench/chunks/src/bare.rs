//! What the machine does without any cache.

use crate::clock::{Sheet, time};
use crate::works::{ENTRIES, MIB, Setting, drawn, payload};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

pub fn run(setting: &Setting, sheet: &mut Sheet) {
    let data = payload(8 * MIB);
    let mut out = vec![0; MIB];
    let copy = time(setting.rounds, 400, |_| {
        for _ in 0..400 {
            out.copy_from_slice(std::hint::black_box(&data[..MIB]));
        }
    });
    sheet.note("hit 1 MiB", "memcpy", MIB, copy);
    let path = setting.folder.join("bare");
    let mut file = File::create(&path).expect("a file");
    for _ in 0..ENTRIES {
        file.write_all(&data[..MIB]).expect("a write");
    }
    let file = File::open(&path).expect("a file");
    let read = time(setting.rounds, 400, |round| {
        for number in 0..400 {
            let offset = drawn(number + round) * MIB as u64;
            file.read_exact_at(&mut out, offset).expect("a read");
        }
    });
    sheet.note("hit 1 MiB", "pread", MIB, read);
    for len in [MIB, 8 * MIB] {
        let count = (setting.limit.min(512 << 20) / 2) as usize / len;
        let write = time(setting.rounds, count, |_| {
            let mut file = File::create(&path).expect("a file");
            for _ in 0..count {
                file.write_all(&data[..len]).expect("a write");
            }
        });
        sheet.note(&format!("put {} MiB, full", len / MIB), "write", len, write);
    }
    let _ = std::fs::remove_file(&path);
}
