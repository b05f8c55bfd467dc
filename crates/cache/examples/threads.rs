//! Measures how lookups and writes of one cache scale from one thread to two.
//!
//!     cargo run --release -p nuthatch-cache --example threads [ITEMS]
//!
//! Each thread picks from all keys, in batches of 64. The result compares two threads with one, as
//! the median of several rounds.

use nuthatch_cache::{BatchKey, Cache, Options, Session, Write};
use nuthatch_testing::random::Random;
use std::sync::Barrier;
use std::time::Instant;

const ROUNDS: usize = 9;
const BATCH: usize = 64;
const VALUE: [u8; 100] = [7; 100];

#[derive(Clone, Copy, Debug)]
enum Work {
    Get,
    Set,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let items: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let cache = Cache::new(Options::new().memory((items * 1024).max(64 << 20)))?;
    let mut session = cache.session()?;
    for number in 0..items {
        session.guard().set(&key(number), &VALUE, &Write::new()).map(drop)?;
    }
    drop(session);
    println!("{items} items of 16 + {} bytes, millions per second", VALUE.len());
    for work in [Work::Get, Work::Set] {
        let (mut one, mut two): (Vec<_>, Vec<_>) = (0..ROUNDS)
            .map(|_| (rate(&cache, items, work, 1), rate(&cache, items, work, 2)))
            .unzip();
        let (one, two) = (median(&mut one), median(&mut two));
        println!("{work:?}: one thread {one:.2}, two {two:.2}: {:.2} times as many", two / one);
    }
    Ok(())
}

/// Returns millions of operations per second of all threads together.
fn rate(cache: &Cache, items: u64, work: Work, threads: u64) -> f64 {
    let barrier = Barrier::new(threads as usize);
    let each = items / threads;
    let seconds = std::thread::scope(|scope| {
        let run = |thread: u64| {
            let mut session = cache.session().expect("few sessions");
            barrier.wait();
            let start = Instant::now();
            let mut random = Random::new(thread + 1);
            for _ in 0..each / BATCH as u64 {
                batch(cache, &mut session, work, &mut random, items);
            }
            start.elapsed().as_secs_f64()
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).fold(0.0, f64::max)
    });
    (each * threads) as f64 / seconds / 1e6
}

fn batch(cache: &Cache, session: &mut Session<'_>, work: Work, random: &mut Random, items: u64) {
    let guard = session.guard();
    let keys: [_; BATCH] = std::array::from_fn(|_| key(random.next_u64() % items));
    let hashes = keys.map(|key| cache.hash(&key));
    match work {
        Work::Get => {
            guard.prefetch(&mut hashes.map(BatchKey::to_read));
            let found =
                keys.iter().zip(hashes).filter_map(|(key, hash)| guard.get_hashed(key, hash));
            assert_eq!(found.filter(|item| item.value() == VALUE).count(), BATCH);
        }
        Work::Set => {
            guard.prefetch(&mut hashes.map(BatchKey::to_write));
            for (key, hash) in keys.iter().zip(hashes) {
                guard.set_hashed(key, hash, &VALUE, &Write::new()).map(drop).expect("room");
            }
        }
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
