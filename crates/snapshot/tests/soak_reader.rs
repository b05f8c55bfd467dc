//! A reader for `scripts/follow_soak`: `soak_reader PATH INTERVAL_MS KEYS`.
//!
//! Watches the snapshot at PATH, in which the keys `key:0` to `key:KEYS-1` all have the number of
//! the generation as text. Prints `generation N` when it reads a later one than before. If it finds
//! another value than expected, it prints both and fails. Runs until it is killed.

use nuthatch_snapshot::{Snapshot, WatchOptions};
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

/// Time between two groups of lookups. Six readers share the processors with the follower.
const PAUSE: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, interval, keys] = arguments.as_slice() else {
        eprintln!("usage: soak_reader PATH INTERVAL_MS KEYS");
        return ExitCode::from(2);
    };
    let interval = Duration::from_millis(interval.parse().expect("an interval"));
    match read(path, interval, keys.parse().expect("a number of keys")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Reads until standard output is closed.
fn read(path: &str, interval: Duration, keys: usize) -> Result<(), String> {
    let watch = WatchOptions::new().interval(interval).path(path).map_err(|e| e.to_string())?;
    let (mut reader, mut last) = (watch.reader(), 0);
    loop {
        let snapshot = reader.current();
        let generation = value(snapshot, 0)?;
        for key in 1..keys {
            if key == keys / 2 {
                // The follower may replace the file here: the snapshot stays readable.
                std::thread::sleep(PAUSE);
            }
            let found = value(snapshot, key)?;
            if found != generation {
                return Err(format!("key:{key}: expected {generation}, found {found}"));
            }
        }
        if generation < last {
            return Err(format!("key:0: expected {last} or more, found {generation}"));
        }
        if generation > last && writeln!(stdout(), "generation {generation}").is_err() {
            return Ok(());
        }
        last = generation;
    }
}

fn value(snapshot: &Snapshot, key: usize) -> Result<u64, String> {
    let name = format!("key:{key}");
    let found = snapshot.get_string(name.as_bytes()).map_err(|e| e.to_string())?;
    let number = found.as_deref().and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("{name}: expected a number, found {found:?}"))
}
