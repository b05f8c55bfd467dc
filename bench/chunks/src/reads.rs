//! Workloads that read entries of 1 MiB.

use crate::buffer::Buffer;
use crate::clock::{Hits, Runner, Sheet, nanoseconds};
use crate::systems::{Entrant, MIB, Setting, System, payload};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Instant;

/// Number of stored entries of 1 MiB, among which the hits choose.
pub const ENTRIES: u64 = 64;
pub const THREADS: usize = 8;
/// Number of operations in a round.
const HITS: usize = 100;
const MISSES: usize = 50_000;

pub fn drawn(number: usize) -> u64 {
    (number as u64).wrapping_mul(37) % ENTRIES
}

type Open = (Entrant, Box<dyn System>);

pub fn run(setting: &Setting, sheet: &mut Sheet) {
    let data = payload(MIB);
    let folder = |entrant: &Entrant| setting.folder.join("reads").join(entrant.name);
    let open = |entrant: &Entrant| {
        std::fs::create_dir_all(folder(entrant)).expect("a folder");
        let system = (entrant.open)(&folder(entrant), setting.limit);
        for key in 0..ENTRIES {
            system.put(key, &data);
            system.settle();
        }
        (*entrant, system)
    };
    let open: Vec<Open> = setting.entrants.iter().map(open).collect();
    let path = setting.folder.join("bare");
    let mut file = File::create(&path).expect("a file");
    (0..ENTRIES).for_each(|_| file.write_all(&data).expect("a write"));
    let file = File::open(&path).expect("a file");

    misses(&open, setting.rounds, sheet);
    hits(&open, &file, &data, setting.rounds, sheet);
    together(&open, &file, &data, setting.rounds, sheet);
    drop(open);
    first_hits("open and first hit", &setting.entrants, setting.rounds, sheet, |entrant| {
        (entrant.open)(&folder(entrant), setting.limit)
    });
    cold(setting, &folder, &file, sheet);
    let _ = std::fs::remove_dir_all(setting.folder.join("reads"));
    let _ = std::fs::remove_file(&path);
}

/// Measures opening a filled cache and its first hit of an entry of at most 1 MiB.
pub fn first_hits<'a>(
    work: &str,
    entrants: impl IntoIterator<Item = &'a Entrant>,
    rounds: usize,
    sheet: &mut Sheet,
    open: impl Fn(&Entrant) -> Box<dyn System>,
) {
    let entrants: Vec<_> = entrants.into_iter().map(|entrant| (entrant, Hits::default())).collect();
    let runners = entrants.iter().map(|(entrant, hits)| {
        let open = &open;
        let mut out = Buffer::new(MIB);
        Runner::new(entrant.name, move |_| {
            let mut system = None;
            nanoseconds(|| {
                let open = open(entrant);
                hits.count(open.get(7, &mut out));
                system = Some(open);
            })
        })
    });
    sheet.race(work, 0, rounds, runners.collect());
    entrants.iter().for_each(|(entrant, hits)| sheet.note_misses(work, entrant, hits));
}

fn cold(setting: &Setting, folder: &dyn Fn(&Entrant) -> PathBuf, file: &File, sheet: &mut Sheet) {
    let work = "hit 1 MiB, cold";
    let entrants = setting.entrants.iter().filter(|entrant| entrant.files_alone);
    let entrants: Vec<_> = entrants.map(|entrant| (entrant, Hits::default())).collect();
    let runners = entrants.iter().map(|(entrant, hits)| {
        let folder = folder(entrant);
        Runner::new(entrant.name, move |_| {
            let system = (entrant.open)(&folder, setting.limit);
            evict_from_page_cache(&folder);
            let mut out = Buffer::new(MIB);
            let mut get = |number| hits.count(system.get(drawn(number), &mut out));
            nanoseconds(|| (0..ENTRIES as usize).for_each(&mut get)) / ENTRIES as f64
        })
    });
    let mut runners: Vec<_> = runners.collect();
    runners.push(Runner::new("pread", |_| {
        evict_file(file);
        let mut out = Buffer::new(MIB);
        let read = |number| read(file, number, &mut out);
        nanoseconds(|| (0..ENTRIES as usize).for_each(read)) / ENTRIES as f64
    }));
    sheet.race(work, MIB, setting.rounds.min(5), runners);
    entrants.iter().for_each(|(entrant, hits)| sheet.note_misses(work, entrant, hits));
}

fn read(file: &File, number: usize, out: &mut [u8]) {
    file.read_exact_at(out, drawn(number) * MIB as u64).expect("a read");
}

fn misses(open: &[Open], rounds: usize, sheet: &mut Sheet) {
    let mut runners = Vec::new();
    for (entrant, system) in open.iter().filter(|open| !open.0.reads_only) {
        let mut out = Buffer::new(MIB);
        runners.push(Runner::each(entrant.name, MISSES, move |number| {
            assert!(!system.get(1 << 40 | number as u64, &mut out), "a key that is not there");
        }));
    }
    sheet.race("miss", 0, rounds, runners);
}

fn hits(open: &[Open], file: &File, data: &[u8], rounds: usize, sheet: &mut Sheet) {
    let work = "hit 1 MiB";
    let found: Vec<_> = open.iter().map(|_| Hits::default()).collect();
    let mut runners = vec![copies(data), preads(file)];
    for ((entrant, system), found) in open.iter().zip(&found) {
        let mut out = Buffer::new(MIB);
        runners.push(Runner::each(entrant.name, HITS, move |number| {
            found.count(system.get(drawn(number), &mut out));
        }));
    }
    sheet.race(work, MIB, rounds, runners);
    for ((entrant, system), found) in open.iter().zip(&found) {
        sheet.note_misses(work, entrant, found);
        let mut out = Buffer::new(MIB);
        assert!(!system.get(7, &mut out) || out[..] == *data, "the bytes that were put");
    }
}

fn copies(data: &[u8]) -> Runner<'_> {
    let mut out = Buffer::new(MIB);
    Runner::each("memcpy", HITS, move |_| out.copy_from_slice(std::hint::black_box(data)))
}

fn preads(file: &File) -> Runner<'_> {
    let mut out = Buffer::new(MIB);
    Runner::each("pread", HITS, move |number| read(file, number, &mut out))
}

/// Measures hits by several concurrent threads: the total duration divided by the number of hits.
fn together(open: &[Open], file: &File, data: &[u8], rounds: usize, sheet: &mut Sheet) {
    let memory: Vec<_> = (0..ENTRIES).map(|_| data.to_vec()).collect();
    let copy = |number: usize, out: &mut Buffer| {
        out.copy_from_slice(&memory[drawn(number) as usize]);
    };
    let pread = |number: usize, out: &mut Buffer| read(file, number, out);
    for (work, threads) in [("hit 1 MiB, 1 thread", 1), ("hit 1 MiB, 8 threads", THREADS)] {
        let found: Vec<_> = open.iter().map(|_| Hits::default()).collect();
        let mut runners = vec![
            Runner::new("memcpy", |_| at_once(threads, HITS, &copy)),
            Runner::new("pread", |_| at_once(threads, HITS, &pread)),
        ];
        for ((entrant, system), found) in open.iter().zip(&found) {
            runners.push(Runner::new(entrant.name, move |_| {
                at_once(threads, HITS, &|number: usize, out: &mut Buffer| {
                    found.count(system.get(drawn(number), out));
                })
            }));
        }
        sheet.race(work, MIB, rounds, runners);
        for ((entrant, _), found) in open.iter().zip(&found) {
            sheet.note_misses(work, entrant, found);
        }
    }
}

/// Runs `work` in concurrent threads, and returns the total duration divided by the number of
/// operations, in nanoseconds.
pub fn at_once(threads: usize, hits: usize, work: &(dyn Fn(usize, &mut Buffer) + Sync)) -> f64 {
    let barrier = Barrier::new(threads);
    let count = hits / threads.min(2);
    let run = |thread: usize| {
        let mut out = Buffer::new(MIB);
        work(thread, &mut out);
        barrier.wait();
        let began = Instant::now();
        (0..count).for_each(|number| work(number + thread * 8, &mut out));
        (began, Instant::now())
    };
    let times: Vec<_> = std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    let began = times.iter().map(|(began, _)| *began).min().expect("a time");
    let ended = times.iter().map(|(_, ended)| *ended).max().expect("a time");
    (ended - began).as_nanos() as f64 / (count * threads) as f64
}

/// Evicts all files of a folder from the page cache, except for mapped pages.
fn evict_from_page_cache(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            evict_from_page_cache(&path);
        } else if let Ok(file) = File::open(&path) {
            evict_file(&file);
        }
    }
}

fn evict_file(file: &File) {
    file.sync_data().expect("a sync");
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
}
