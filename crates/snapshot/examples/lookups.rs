//! Builds a snapshot, then looks every key up: one at a time, in batches, and by type.
//!
//!     cargo run --release -p nuthatch-snapshot --example lookups [ENTRIES]
//!
//! Every run with the same arguments executes the same lookups, so the instructions of two builds
//! can be compared (docs/formats/snapshot.md has the layout that the lookups read):
//!
//!     valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*one_at_a_time*' \
//!         target/release/examples/lookups 1000000

use nuthatch_snapshot::{Snapshot, Value, Writer};
use std::error::Error;
use std::hint::black_box;

/// Keys of one call of `get_many`.
const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let entries: i64 = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("users.nut");
    let mut writer = Writer::create(&path)?;
    for number in 0..entries {
        writer.insert(key(number).as_bytes(), Value::I64(number))?;
    }
    writer.finish()?;

    let users = Snapshot::open(&path)?;
    // Keys that exist come first; as many that do not exist follow.
    let keys: Vec<String> = (0..2 * entries).map(key).collect();
    println!("get:      {} of {} keys found", one_at_a_time(&users, &keys)?, keys.len());
    println!("get_many: {} of {} keys found", in_batches(&users, &keys)?, keys.len());
    println!("get_i64:  the values add up to {}", sum_by_type(&users, &keys)?);
    Ok(())
}

/// Returns a key of 14 bytes: keys of 9 to 16 bytes are hashed and compared fastest.
fn key(number: i64) -> String {
    format!("user:{number:09}")
}

/// Returns how many of the keys exist.
#[inline(never)]
fn one_at_a_time(users: &Snapshot, keys: &[String]) -> Result<usize, Box<dyn Error>> {
    let mut found = 0;
    for key in keys {
        found += usize::from(black_box(users.get(key.as_bytes())?).is_some());
    }
    Ok(found)
}

/// Returns how many of the keys exist. The memory latencies of a batch overlap.
#[inline(never)]
fn in_batches(users: &Snapshot, keys: &[String]) -> Result<usize, Box<dyn Error>> {
    let mut found = 0;
    let mut values = [const { None }; BATCH];
    for batch in keys.chunks(BATCH) {
        let values = &mut values[..batch.len()];
        users.get_many(batch, values)?;
        found += values.iter().filter(|value| value.is_some()).count();
    }
    Ok(found)
}

/// Returns the sum of the values. Fails if a value is not an integer.
#[inline(never)]
fn sum_by_type(users: &Snapshot, keys: &[String]) -> Result<i64, Box<dyn Error>> {
    let mut sum = 0;
    for key in keys {
        sum += users.get_i64(key.as_bytes())?.unwrap_or(0);
    }
    Ok(sum)
}
