//! Nuthatch's chunk cache, and workloads that only Nuthatch supports.

use crate::buffer::Buffer;
use crate::clock::{Runner, Sheet};
use crate::reads::{ENTRIES, THREADS, at_once, drawn};
use crate::systems::{Entrant, MIB, Setting, System, payload};
use nuthatch_chunks::{Check, Chunks, Key, Lookup, Options, TaskChunks};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Number of views in a round.
const VIEWS: usize = 20_000;

pub struct Nuthatch(Chunks);

fn key_of(key: u64) -> Key {
    let mut name = *b"object 0000000000000000";
    name[7..15].copy_from_slice(&key.to_le_bytes());
    Key::named(name).expect("a key")
}

impl Nuthatch {
    fn open(folder: &Path, limit: u64, check: Check) -> Box<dyn System> {
        let options = Options::new().limit(limit).check(check);
        Box::new(Self(Chunks::open(folder, &options).expect("a cache")))
    }

    /// Returns Nuthatch with its default check, and with the other checks.
    pub fn entrants() -> Vec<Entrant> {
        let once: Entrant =
            Entrant::new("nuthatch", |path, limit| Self::open(path, limit, Check::Once));
        let always = Entrant::new("always", |path, limit| Self::open(path, limit, Check::Always));
        let never = Entrant::new("never", |path, limit| Self::open(path, limit, Check::Never));
        let reads_only = |entrant| Entrant { reads_only: true, ..entrant };
        vec![once, reads_only(always), reads_only(never)]
    }
}

impl System for Nuthatch {
    fn put(&self, key: u64, data: &[u8]) {
        let stored = self.0.put(&key_of(key), 0..1, &[0, data.len() as u64], data);
        assert_eq!(stored.expect("a put").not_kept, None);
    }

    fn get(&self, key: u64, out: &mut Buffer) -> bool {
        matches!(self.0.get_into(&key_of(key), 0..1, out).expect("a get"), Lookup::Found(_))
    }
}

pub fn more(setting: &Setting, sheet: &mut Sheet) {
    let folder = setting.folder.join("more");
    let data = payload(64 * MIB);
    let chunks = Chunks::open(&folder, &Options::new().limit(setting.limit)).expect("a cache");
    views(&chunks, &data, setting.rounds, sheet);
    ranges(&chunks, &data, setting.rounds, sheet);
    tasks(chunks, setting.rounds, sheet);
    let _ = std::fs::remove_dir_all(&folder);
}

fn views(chunks: &Chunks, data: &[u8], rounds: usize, sheet: &mut Sheet) {
    for mib in [1, 8, 64] {
        let len = mib * MIB;
        let object = chunks.blocks(&format!("o{mib}"), "1", len as u64, MIB as u64).expect("one");
        object.put(0, &data[..len]).expect("a put");
        let view = Runner::each("nuthatch", 500, |_| {
            let view = object.view(0..len as u64).expect("a view").found().expect("a hit");
            assert_eq!(std::hint::black_box(&view).len(), len as u64);
        });
        sheet.race(&format!("view {mib} MiB"), 0, rounds, vec![view]);
    }
    for entry in 0..ENTRIES {
        chunks.put(&key_of(entry), 0..1, &[0, MIB as u64], &data[..MIB]).expect("a put");
    }
    for (work, threads) in [("view 1 MiB, 1 thread", 1), ("view 1 MiB, 8 threads", THREADS)] {
        let views = Runner::new("nuthatch", |_| {
            at_once(threads, VIEWS, &|number, _| {
                let view = chunks.view(&key_of(drawn(number)), 0..1).expect("a view");
                assert_eq!(std::hint::black_box(view.found().expect("a hit")).len(), MIB as u64);
            })
        });
        sheet.race(work, 0, rounds, vec![views]);
    }
}

fn ranges(chunks: &Chunks, data: &[u8], rounds: usize, sheet: &mut Sheet) {
    let object = chunks.blocks("spliced", "1", 8 * MIB as u64, MIB as u64).expect("an object");
    for block in [3, 1, 7, 0, 2, 6, 4, 5] {
        let range = block * MIB..(block + 1) * MIB;
        object.put(range.start as u64, &data[range]).expect("a put");
    }
    let (mut out, mut small) = (Buffer::new(8 * MIB), Buffer::new(4096));
    let mut whole = Buffer::new(8 * MIB);
    let source = &data[..8 * MIB];
    let copy = Runner::each("memcpy", 20, move |_| {
        whole.copy_from_slice(std::hint::black_box(source));
    });
    let spliced = Runner::each("nuthatch", 20, |_| {
        let found = object.get_into(0..8 * MIB as u64, &mut out).expect("a get");
        assert!(found.found().is_some());
    });
    sheet.race("hit 8 MiB of 8 puts", 8 * MIB, rounds, vec![copy, spliced]);
    let part = Runner::each("nuthatch", 5000, |number| {
        let start = (number * 104_729 % (8 * MIB - 4096)) as u64;
        let found = object.get_into(start..start + 4096, &mut small).expect("a get");
        assert!(found.found().is_some());
    });
    sheet.race("sub-range 4 KiB", 4096, rounds, vec![part]);
}

/// Measures hits by concurrent tasks, whose file operations run on two threads.
fn tasks(chunks: Chunks, rounds: usize, sheet: &mut Sheet) {
    let chunks = TaskChunks::new(Arc::new(chunks), 2).expect("threads");
    for count in [1, 8] {
        let mut buffers: Vec<_> = (0..count).map(|_| vec![0; MIB]).collect();
        let hits = Runner::each("nuthatch", 80 / count, |round| {
            let begun = buffers.drain(..).enumerate();
            let begin =
                |(task, buffer)| chunks.get_into(key_of(drawn(round + task * 8)), 0..1, buffer);
            let begun: Vec<_> = begun.map(begin).collect();
            for task in begun {
                let filled = wait(task);
                assert!(filled.found.expect("a get").found().is_some(), "a hit");
                buffers.push(filled.buffer);
            }
        });
        sheet.race(&format!("hits by {count} tasks"), MIB * count, rounds, vec![hits]);
        let hits = Runner::each("nuthatch", 80 / count, |round| {
            let begun = (0..count).map(|task| chunks.get(key_of(drawn(round + task * 8)), 0..1));
            let begun: Vec<_> = begun.collect();
            for task in begun {
                let found = wait(task).expect("a get").found().expect("a hit");
                assert_eq!(std::hint::black_box(found).data.len(), MIB);
            }
        });
        sheet.race(&format!("owned hits by {count} tasks"), MIB * count, rounds, vec![hits]);
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<T>(task: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}
