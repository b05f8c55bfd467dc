//! The works, the same for every system.

use crate::clock::{Sheet, figure, time};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub const MIB: usize = 1 << 20;
/// Entries of 1 MiB that the hits are drawn from.
pub const ENTRIES: u64 = 64;
const THREADS: usize = 8;

/// What a race is run with.
pub struct Setting {
    pub folder: PathBuf,
    pub limit: u64,
    pub rounds: usize,
}

/// A cache of chunks.
pub trait System: Sync + Sized {
    const NAME: &'static str;
    /// Whether it can be read by several threads at once.
    const SHARED: bool = true;
    /// Whether it may drop what was put before it was ever read.
    const DROPS: bool = false;
    /// How many bytes a put may have.
    const PUT_MOST: usize = usize::MAX;

    fn open(folder: &Path, limit: u64) -> Self;
    fn put(&self, key: u64, data: &[u8]);
    /// Copies the value of a key out. False if it is not there.
    fn get(&self, key: u64, out: &mut Vec<u8>) -> bool;
    /// Has what was put arrive where it is read from.
    fn settle(&self) {}
}

/// Bytes that do not compress and are made before any clock starts.
pub fn payload(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub fn drawn(number: usize) -> u64 {
    (number as u64).wrapping_mul(37) % ENTRIES
}

/// Runs all works on a system.
pub fn run<S: System>(setting: &Setting, sheet: &mut Sheet) {
    let folder = setting.folder.join(S::NAME);
    std::fs::create_dir_all(&folder).expect("a folder");
    let data = payload(8 * MIB);
    reads::<S>(setting, sheet, &folder.join("reads"), &data);
    puts::<S>(setting, sheet, &folder.join("puts"), &data);
    many::<S>(setting, sheet, &folder.join("many"), &data);
    let _ = std::fs::remove_dir_all(&folder);
}

fn reads<S: System>(setting: &Setting, sheet: &mut Sheet, folder: &Path, data: &[u8]) {
    let system = S::open(folder, setting.limit);
    for key in 0..ENTRIES {
        system.put(key, &data[..MIB]);
        system.settle();
    }
    let mut out = vec![0; MIB];
    let miss = time(setting.rounds, 20_000, |round| {
        for number in 0..20_000 {
            let key = 1 << 40 | (round * 20_000 + number) as u64;
            assert!(!system.get(key, &mut out), "a key that is not there");
        }
    });
    sheet.note("miss", S::NAME, 0, miss);
    let mut hits = 0;
    let hit = time(setting.rounds, 400, |round| {
        let number = 0..400;
        hits += number.filter(|number| system.get(drawn(number + round), &mut out)).count();
    });
    let share = hits as f64 / (400 * (setting.rounds + 1)) as f64;
    if share < 1.0 {
        eprintln!("{}: {share:.3} of the gets were hits", S::NAME);
    }
    assert!(S::DROPS || share >= 1.0 && out == data[..MIB], "the bytes that were put");
    sheet.note("hit 1 MiB", S::NAME, MIB, hit);
    if S::SHARED {
        let hits = figure(setting.rounds, |_| together(&system, 100));
        sheet.note("hit 1 MiB, 8 threads", S::NAME, MIB, hits);
    }
    drop(system);
    let first = figure(setting.rounds, |_| {
        let began = Instant::now();
        let system = S::open(folder, setting.limit);
        assert!(system.get(7, &mut out) || S::DROPS, "a hit after a restart");
        began.elapsed().as_nanos() as f64
    });
    sheet.note("open and first hit", S::NAME, 0, first);
}

/// Nanoseconds of one hit when eight threads do so many each.
fn together<S: System>(system: &S, count: usize) -> f64 {
    let barrier = std::sync::Barrier::new(THREADS);
    let times: Vec<_> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut out = vec![0; MIB];
                let _ = system.get(drawn(thread), &mut out);
                barrier.wait();
                let began = Instant::now();
                for number in 0..count {
                    let hit = system.get(drawn(number + thread * 8), &mut out);
                    assert!(hit || S::DROPS);
                }
                (began, Instant::now())
            })
        };
        let threads: Vec<_> = (0..THREADS).map(work).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    let began = times.iter().map(|(began, _)| *began).min().expect("a time");
    let ended = times.iter().map(|(_, ended)| *ended).max().expect("a time");
    (ended - began).as_nanos() as f64 / (count * THREADS) as f64
}

fn puts<S: System>(setting: &Setting, sheet: &mut Sheet, folder: &Path, data: &[u8]) {
    let limit = setting.limit.min(512 << 20);
    for len in [MIB, 8 * MIB].into_iter().filter(|len| *len <= S::PUT_MOST) {
        let folder = folder.join(len.to_string());
        let system = S::open(&folder, limit);
        let mut key = 0;
        let mut put_all = |bytes: u64| {
            for _ in 0..bytes / len as u64 {
                system.put(key, &data[..len]);
                key += 1;
            }
        };
        put_all(limit + limit / 4);
        let count = (limit / 2) as usize / len;
        let put = time(setting.rounds, count, |_| put_all(limit / 2));
        sheet.note(&format!("put {} MiB, full", len / MIB), S::NAME, len, put);
        drop(system);
        let _ = std::fs::remove_dir_all(&folder);
    }
}

fn many<S: System>(setting: &Setting, sheet: &mut Sheet, folder: &Path, data: &[u8]) {
    let system = S::open(folder, setting.limit);
    for key in 0..100_000 {
        system.put(key, &data[..4096]);
    }
    system.settle();
    let mut out = vec![0; 4096];
    let hit = time(setting.rounds, 100_000, |round| {
        for number in 0..100_000_u64 {
            let key = (number + round as u64).wrapping_mul(61_403) % 100_000;
            let _ = system.get(key, &mut out);
        }
    });
    sheet.note("hit 4 KiB of 100,000", S::NAME, 4096, hit);
    let miss = time(setting.rounds, 100_000, |round| {
        for number in 0..100_000 {
            let key = 1 << 40 | (round * 100_000 + number) as u64;
            assert!(!system.get(key, &mut out), "a key that is not there");
        }
    });
    sheet.note("miss among 100,000", S::NAME, 0, miss);
}
