//! Workloads with 100,000 entries of 4 KiB, and with a million entries of 1 KiB.

use crate::buffer::Buffer;
use crate::clock::{Hits, Runner, Sheet, nanoseconds};
use crate::reads::first_hits;
use crate::systems::{Entrant, Setting, System, payload};
use nuthatch_chunks::{Chunks, Key, Options};

const MANY: u64 = 100_000;
const LEN: usize = 4096;
/// Number of operations in a round.
const COUNT: usize = 20_000;

pub fn run(setting: &Setting, sheet: &mut Sheet) {
    let data = payload(LEN);
    let folder = |entrant: &Entrant| setting.folder.join("many").join(entrant.name);
    let entrants: Vec<_> = setting.entrants.iter().filter(|entrant| !entrant.reads_only).collect();
    let fill = |entrant: &&Entrant| -> Box<dyn System> {
        std::fs::create_dir_all(folder(entrant)).expect("a folder");
        let system = (entrant.open)(&folder(entrant), setting.limit.max(2 << 30));
        (0..MANY).for_each(|key| system.put(key, &data));
        system.settle();
        system
    };
    let open: Vec<_> = entrants.iter().map(fill).collect();
    let found: Vec<_> = open.iter().map(|_| Hits::default()).collect();
    let mut hits = Vec::new();
    let mut misses = Vec::new();
    for ((entrant, system), found) in entrants.iter().zip(&open).zip(&found) {
        let (mut out, mut other) = (Buffer::new(LEN), Buffer::new(LEN));
        hits.push(Runner::each(entrant.name, COUNT, move |number| {
            found.count(system.get((number as u64).wrapping_mul(61_403) % MANY, &mut out));
        }));
        misses.push(Runner::each(entrant.name, COUNT, move |number| {
            assert!(!system.get(1 << 40 | number as u64, &mut other), "a key that is not there");
        }));
    }
    let work = "hit 4 KiB of 100,000";
    sheet.race(work, LEN, setting.rounds, hits);
    sheet.race("miss among 100,000", 0, setting.rounds, misses);
    for (entrant, found) in entrants.iter().zip(&found) {
        sheet.note_misses(work, entrant, found);
    }
    drop(open);
    let (work, rounds) = ("open 100,000 and first hit", setting.rounds.min(5));
    first_hits(work, entrants, rounds, sheet, |entrant| {
        (entrant.open)(&folder(entrant), setting.limit.max(2 << 30))
    });
    let _ = std::fs::remove_dir_all(setting.folder.join("many"));
}

/// Measures opening a cache of a million chunks, for Nuthatch only.
pub fn million(setting: &Setting, sheet: &mut Sheet) {
    let folder = setting.folder.join("million");
    let options = Options::new().limit(16 << 30);
    let data = payload(1000 << 10);
    let offsets: Vec<_> = (0..=1000).map(|chunk| chunk << 10).collect();
    let key = |object: u64| Key::named(object.to_le_bytes()).expect("a key");
    let chunks = Chunks::open(&folder, &options).expect("a cache");
    for object in 0..1000 {
        let stored = chunks.put(&key(object), 0..1000, &offsets, &data).expect("a put");
        assert_eq!(stored.stored, 1000);
    }
    drop(chunks);
    let mut out = vec![0; 1 << 10];
    let open = Runner::new("nuthatch", |round| {
        let mut chunks = None;
        nanoseconds(|| {
            let open = Chunks::open(&folder, &options).expect("a cache");
            let range = round as u64..round as u64 + 1;
            let found = open.get_into(&key(500), range, &mut out).expect("a get");
            assert!(found.found().is_some(), "a hit");
            chunks = Some(open);
        })
    });
    sheet.race("open 1,000,000 and first hit", 0, setting.rounds, vec![open]);
    let _ = std::fs::remove_dir_all(&folder);
}
