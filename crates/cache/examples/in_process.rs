//! Fills a cache in this process with many small items, looks them up, and prints the times.
//!
//!     cargo run --release -p nuthatch-cache --example in_process [ITEMS] [BUDGET IN MIB]

use nuthatch_cache::{BatchKey, Cache, Options, Write};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |at: usize, default| {
        std::env::args().nth(at).map_or(Ok(default), |argument| argument.parse::<u64>())
    };
    let (items, mib) = (argument(1, 1_000_000)?, argument(2, 4096)?);
    let cache = Cache::new(Options::new().memory(mib << 20))?;
    let mut session = cache.session()?;
    let key = |number: u64| format!("{number:016}");
    let per_item = |start: Instant| start.elapsed().as_nanos() as f64 / items as f64;

    // Reads and writes happen under guards, for example one for each batch of requests.
    let start = Instant::now();
    for batch in 0..items.div_ceil(64) {
        let guard = session.guard();
        for number in batch * 64..items.min((batch + 1) * 64) {
            let write = Write::new().expires_in_ms(3_600_000);
            guard.set(key(number).as_bytes(), &[7; 32], &write).map(drop)?;
        }
    }
    println!("{items} items of 16 + 32 bytes stored: {:.0} ns each", per_item(start));

    // Prefetching for a whole batch overlaps the waits for memory.
    let start = Instant::now();
    let mut found = 0;
    for batch in 0..items.div_ceil(64) {
        let guard = session.guard();
        let spread = |at: u64| (batch * 64 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) % items;
        let keys: Vec<_> = (0..64).map(|at| key(spread(at))).collect();
        let ahead = |key: &String| BatchKey::to_read(cache.hash(key.as_bytes()));
        let mut hashes: Vec<_> = keys.iter().map(ahead).collect();
        guard.prefetch(&mut hashes);
        let lookups = keys.iter().zip(&hashes);
        found +=
            lookups.filter_map(|(key, hash)| guard.get_prefetched(key.as_bytes(), hash)).count();
    }
    println!("{found} of them looked up in batches: {:.0} ns each", per_item(start));

    let stats = cache.stats();
    let payload = stats.items * 48;
    let over = (stats.memory - payload) as f64 / stats.items as f64;
    println!("{over:.1} bytes of memory per item besides key and value");
    Ok(())
}
