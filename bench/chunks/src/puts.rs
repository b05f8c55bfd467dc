//! Workloads that put entries into full caches.

use crate::clock::{Runner, Sheet, nanoseconds};
use crate::systems::{Entrant, MIB, Setting, System, payload};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: u64 = 8;
/// Number of bytes that a round puts.
const ROUND_BYTES: usize = 64 * MIB;

/// A full cache, and the key of the next put.
struct Full {
    entrant: Entrant,
    system: Box<dyn System>,
    next: AtomicU64,
}

impl Full {
    fn put(&self, count: u64, data: &[u8]) {
        for _ in 0..count {
            self.system.put(self.next.fetch_add(1, Ordering::Relaxed), data);
        }
    }
}

pub fn run(setting: &Setting, sheet: &mut Sheet) {
    let all = payload(8 * MIB);
    let limit = setting.limit.min(512 << 20);
    for len in [MIB, 8 * MIB] {
        let data = &all[..len];
        let folder = setting.folder.join("puts");
        let fits = |entrant: &&Entrant| entrant.max_put_bytes >= len && !entrant.reads_only;
        let fill = |entrant: &Entrant| {
            let folder = folder.join(entrant.name);
            std::fs::create_dir_all(&folder).expect("a folder");
            let system = (entrant.open)(&folder, limit);
            let full = Full { entrant: *entrant, system, next: AtomicU64::new(0) };
            full.put((limit + limit / 4) / len as u64, data);
            full
        };
        let full: Vec<_> = setting.entrants.iter().filter(fits).map(fill).collect();
        for (work, threads) in [("put {} MiB, full", 1), ("put {} MiB, full, 8 threads", THREADS)] {
            let work = work.replace("{}", &(len / MIB).to_string());
            let count = ROUND_BYTES / len;
            let path = folder.join("written");
            let mut runners = vec![Runner::new("write", |_| write(&path, count, data))];
            for full in &full {
                runners.push(Runner::new(full.entrant.name, move |_| {
                    nanoseconds(|| put(full, threads, count as u64, data)) / count as f64
                }));
            }
            sheet.race(&work, len, setting.rounds, runners);
        }
        drop(full);
        let _ = std::fs::remove_dir_all(&folder);
    }
}

fn put(full: &Full, threads: u64, count: u64, data: &[u8]) {
    if threads == 1 {
        return full.put(count, data);
    }
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| full.put(count / threads, data));
        }
    });
}

/// Writes the same bytes sequentially to a new file, and returns the nanoseconds per write.
/// Creating and removing the file is not measured.
fn write(path: &Path, count: usize, data: &[u8]) -> f64 {
    let mut file = File::create_new(path).expect("a file");
    let time = nanoseconds(|| {
        (0..count).for_each(|_| file.write_all(data).expect("a write"));
    });
    std::fs::remove_file(path).expect("the file");
    time / count as f64
}
