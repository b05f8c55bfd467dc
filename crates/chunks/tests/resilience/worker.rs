//! A worker process: stores and reads, and compares every byte.

use crate::LIMIT;
use nuthatch_chunks::{Check, Chunks, Error, Key, Lookup, Options};
use nuthatch_testing::random::{self, Random};
use std::io::{Read, Write, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of bytes that are flipped while one view lives.
const FLIPS: usize = 8;
/// Number of objects, and of chunks of each: several times what the folder can hold.
const OBJECTS: u64 = 40;
const CHUNKS: u64 = 24;

/// Returns the length of a chunk.
fn len_of(object: u64, chunk: u64) -> usize {
    (1 + (object * 7919 + chunk * 104_729) % 90_000) as usize
}

/// Appends the bytes of a chunk.
fn append(object: u64, chunk: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&random::bytes(object << 32 | chunk, len_of(object, chunk)));
}

fn bytes(object: u64, range: std::ops::Range<u64>) -> (Vec<u8>, Vec<u64>) {
    let (mut data, mut offsets) = (Vec::new(), vec![0]);
    for chunk in range {
        append(object, chunk, &mut data);
        offsets.push(data.len() as u64);
    }
    (data, offsets)
}

/// Works until its standard output is closed.
pub(crate) fn work(folder: &Path, seed: u64) -> ExitCode {
    let options = Options::new().limit(LIMIT).check(Check::Always);
    let chunks = match Chunks::open(folder, &options) {
        Ok(chunks) => chunks,
        // The chunk was evicted too often, or it was damaged in this moment: no wrong byte.
        Err(error) => {
            println!("{error}");
            return ExitCode::SUCCESS;
        }
    };
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    std::thread::spawn(move || {
        let _ = stdin().read(&mut [0]);
        is_over.store(true, Ordering::Relaxed);
    });
    let mut random = Random::new(seed);
    let (mut done, mut hits) = (0_u64, 0_u64);
    while !over.load(Ordering::Relaxed) {
        match step(&chunks, &mut random) {
            Ok(hit) => hits += u64::from(hit),
            Err(error) => {
                eprintln!("worker {seed} after {done} operations: {error}");
                return ExitCode::FAILURE;
            }
        }
        done += 1;
        if done.is_multiple_of(16) && writeln!(stdout(), "{done} {hits}").is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Runs one operation. Returns whether it found everything.
fn step(chunks: &Chunks, random: &mut Random) -> Result<bool, String> {
    let object = random.below(OBJECTS).min(random.below(OBJECTS));
    let start = random.below(CHUNKS);
    let end = (start + 1 + random.below(6)).min(CHUNKS);
    let key = Key::named(format!("object {object}")).map_err(|e| e.to_string())?;
    let range = start..end;
    let (expected, offsets) = bytes(object, range.clone());
    match random.below(100) {
        0..30 => match chunks.put(&key, range.clone(), &offsets, &expected) {
            // The process that damages the index may have replaced it meanwhile.
            Ok(_) | Err(Error::Folder(_)) => Ok(false),
            Err(error) => Err(format!("a put of {object} {range:?}: {error}")),
        },
        30..60 => {
            let mut out = vec![0; expected.len()];
            let found =
                chunks.get_into(&key, range.clone(), &mut out).map_err(|e| e.to_string())?;
            match found {
                Lookup::Found(found) if found != offsets || out != expected => {
                    Err(format!("wrong bytes of {object} {range:?}"))
                }
                Lookup::Found(_) => Ok(true),
                Lookup::Missing(missing) => within(&missing, &range),
            }
        }
        60..98 => {
            let view = chunks.view(&key, range.clone()).map_err(|e| e.to_string())?;
            let Lookup::Found(view) = view else { return within(view.missing(), &range) };
            let (mut rest, mut wrong) = (&expected[..], 0);
            for slice in view.slices() {
                let whole = format!("a view of {object} {range:?} is too long");
                let (expected, later) = rest.split_at_checked(slice.len()).ok_or(whole)?;
                // The bytes may change while they are compared.
                let found = slice.to_vec();
                wrong += wrong_bytes(&found, expected);
                rest = later;
            }
            if rest.is_empty() && (wrong <= FLIPS || !view.is_intact()) {
                return Ok(true);
            }
            let left = rest.len();
            Err(format!("a wrong view of {object} {range:?}: {wrong} bytes, {left} missing"))
        }
        98 => {
            // Another process may have exclusive access for longer than the patience of this one.
            let _ = chunks.remove(&key);
            Ok(false)
        }
        _ => {
            chunks.list();
            Ok(false)
        }
    }
}

/// Returns the number of wrong bytes of a slice, without zeros at its end, which are permitted: a
/// file that the test truncated reads as zeros, which the view does not detect if a writer has
/// extended the file since. Bytes that the test flipped after the view was created are wrong: at
/// most [`FLIPS`]. More wrong bytes would be those of another place of the cache.
fn wrong_bytes(found: &[u8], expected: &[u8]) -> usize {
    let mut flipped = 0;
    let last = found.iter().rposition(|byte| {
        flipped += usize::from(*byte != 0);
        flipped > FLIPS
    });
    let cut = last.map_or(0, |last| last + 1);
    let pairs = found.iter().zip(expected).enumerate();
    let wrong = |at: usize, found: u8, good: u8| found != good && (at < cut || found != 0);
    pairs.filter(|(at, (found, good))| wrong(*at, **found, **good)).count()
}

/// Checks that missing ranges are in the requested range, and in order. Returns false: it was a
/// miss.
fn within(missing: &[std::ops::Range<u64>], range: &std::ops::Range<u64>) -> Result<bool, String> {
    let inside = missing
        .iter()
        .all(|part| part.start < part.end && part.start >= range.start && part.end <= range.end);
    let ordered = missing.windows(2).all(|pair| pair[0].end < pair[1].start);
    if inside && ordered && !missing.is_empty() {
        return Ok(false);
    }
    Err(format!("{missing:?} is missing of {range:?}"))
}
