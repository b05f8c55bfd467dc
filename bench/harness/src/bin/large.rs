//! Checks snapshots at sizes that are too slow for tests. `bench/large` runs the checks one after
//! the other.

use nuthatch_bench::{Folder, Result, peak_bytes, resident_bytes};
use nuthatch_snapshot::{Snapshot, Value, WriterOptions};
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str = "usage: large entries|vectors|value FOLDER";

const MIB: u64 = 1 << 20;
/// Memory budget of each build, in bytes.
const BUDGET: u64 = 2 << 30;
/// Bytes of memory that a process uses beyond the budget: program, threads and allocator.
const OVERHEAD_BYTES: u64 = 16 * MIB;

const ENTRIES: u32 = 100_000_000;
const VECTORS: u32 = 20_500_000;
const VECTOR_LEN: usize = 128;
/// The maximum length of a value, in bytes.
const VALUE_LEN: usize = 1 << 32;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("large: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["entries", folder] => entries(Path::new(folder)),
        ["vectors", folder] => vectors(Path::new(folder)),
        ["value", folder] => value(Path::new(folder)),
        // Internal command: `vectors` opens its file in a new process.
        ["opened", file] => opened(Path::new(file)),
        _ => Err(USAGE.into()),
    }
}

/// Builds and checks 100 million short entries with a memory budget of 2 GiB.
fn entries(folder: &Path) -> Result<()> {
    let folder = Folder::create(folder)?;
    let file = folder.path().join("entries.nut");
    let start = Instant::now();
    let mut writer = WriterOptions::new().memory(BUDGET as usize).create(&file)?;
    for number in 0..ENTRIES {
        let [key, value] = ["key", "val"].map(|name| format!("{name}_{number}"));
        writer.insert(key.as_bytes(), Value::String(&value))?;
    }
    writer.finish()?;
    built("entries", u64::from(ENTRIES), &file, start)?;
    let snapshot = Snapshot::open(&file)?;
    for number in (0..ENTRIES).step_by(997) {
        let [key, value] = ["key", "val"].map(|name| format!("{name}_{number}"));
        expect(snapshot.get_string(key.as_bytes())?.as_deref() == Some(&value), &key)?;
        expect(!snapshot.contains(value.as_bytes())?, &value)?;
    }
    verified(&snapshot)
}

/// Builds a file of more than 10 GiB, and checks it in a new process.
fn vectors(folder: &Path) -> Result<()> {
    let folder = Folder::create(folder)?;
    let file = folder.path().join("vectors.nut");
    let start = Instant::now();
    let mut writer = WriterOptions::new().memory(BUDGET as usize).create(&file)?;
    for number in 0..VECTORS {
        writer.insert(format!("vec_{number}").as_bytes(), Value::F32List(&vector(number)))?;
    }
    writer.finish()?;
    built("vectors of 128 f32", u64::from(VECTORS), &file, start)?;
    let child = Command::new(env::current_exe()?).arg("opened").arg(&file).status()?;
    expect(child.success(), "opened in a new process")
}

/// Returns a vector that differs from all others. The writer would store equal values once.
fn vector(number: u32) -> [f32; VECTOR_LEN] {
    let mut floats = std::array::from_fn(|at| at as f32);
    floats[0] = f32::from_bits(number);
    floats
}

fn opened(file: &Path) -> Result<()> {
    let before = resident_bytes().ok_or("the system does not report memory use")?;
    let start = Instant::now();
    let snapshot = Snapshot::open(file)?;
    let took = start.elapsed();
    let resident =
        resident_bytes().ok_or("the system does not report memory use")?.saturating_sub(before);
    println!("opened: {:.1} us, {} KiB more in memory", took.as_secs_f64() * 1e6, resident >> 10);
    expect(resident < MIB, "opening takes less than a MiB")?;
    for number in (0..VECTORS).step_by(9973) {
        let key = format!("vec_{number}");
        expect(snapshot.get_f32_list(key.as_bytes())?.as_deref() == Some(&vector(number)), &key)?;
    }
    verified(&snapshot)
}

/// Writes and reads a value of the maximum length, and a short value.
fn value(folder: &Path) -> Result<()> {
    let folder = Folder::create(folder)?;
    let file = folder.path().join("value.nut");
    let mut value = vec![0; VALUE_LEN];
    for (at, byte) in value.iter_mut().enumerate().step_by(4093) {
        *byte = at as u8 | 1;
    }
    let start = Instant::now();
    let mut writer = WriterOptions::new().create(&file)?;
    writer.insert(b"long", Value::Bytes(&value))?;
    writer.insert(b"short", Value::I64(1))?;
    writer.finish()?;
    let took = start.elapsed().as_secs_f64();
    println!("a value of {VALUE_LEN} bytes: written in {took:.1} s");
    let snapshot = Snapshot::open(&file)?;
    expect(snapshot.get_bytes(b"long")?.as_deref() == Some(&value), "long")?;
    expect(snapshot.get_i64(b"short")? == Some(1), "short")?;
    verified(&snapshot)
}

/// Prints the results of a build. Fails if the build exceeded its memory budget.
fn built(what: &str, rows: u64, file: &Path, start: Instant) -> Result<()> {
    let took = start.elapsed().as_secs_f64();
    let peak = peak_bytes().ok_or("the system does not report memory use")?;
    let len = fs::metadata(file)?.len();
    println!(
        "{rows} {what}: {took:.1} s, {:.1} ns an entry, {} MiB of memory at most, file {} MiB",
        took * 1e9 / rows as f64,
        peak / MIB,
        len / MIB
    );
    expect(peak <= BUDGET + OVERHEAD_BYTES, "a build stays within its budget")
}

fn verified(snapshot: &Snapshot) -> Result<()> {
    let start = Instant::now();
    snapshot.verify()?;
    println!("verified: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn expect(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("does not hold: {what}").into()) }
}
