//! Snapshots at the sizes that tests cannot wait for. `bench/large` runs one work after the other.

use nuthatch_bench::{Folder, Result, peak_bytes, resident_bytes};
use nuthatch_snapshot::{Snapshot, Value, WriterOptions};
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str = "usage: large entries|vectors|value FOLDER";

const MIB: u64 = 1 << 20;
/// The budget of each build.
const BUDGET: u64 = 2 << 30;
/// What a process has besides: its program, its threads, and what the allocator keeps.
const BESIDES: u64 = 16 * MIB;

const ENTRIES: u32 = 100_000_000;
const VECTORS: u32 = 20_500_000;
const VECTOR_LEN: usize = 128;
/// The longest value there can be.
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
        // Not for people: `vectors` opens its file in a process that has done nothing else.
        ["opened", file] => opened(Path::new(file)),
        _ => Err(USAGE.into()),
    }
}

/// 100 M short entries, in 2 GiB.
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

/// A file beyond 10 GiB, opened.
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
    expect(child.success(), "opened in a process of its own")
}

/// No two alike: equal ones would be stored once.
fn vector(number: u32) -> [f32; VECTOR_LEN] {
    let mut floats = std::array::from_fn(|at| at as f32);
    floats[0] = f32::from_bits(number);
    floats
}

fn opened(file: &Path) -> Result<()> {
    let before = resident_bytes().ok_or("the system does not tell")?;
    let start = Instant::now();
    let snapshot = Snapshot::open(file)?;
    let took = start.elapsed();
    let resident = resident_bytes().ok_or("the system does not tell")?.saturating_sub(before);
    println!("opened: {:.1} us, {} KiB more in memory", took.as_secs_f64() * 1e6, resident >> 10);
    expect(resident < MIB, "opening takes less than a MiB")?;
    for number in (0..VECTORS).step_by(9973) {
        let key = format!("vec_{number}");
        expect(snapshot.get_f32_list(key.as_bytes())?.as_deref() == Some(&vector(number)), &key)?;
    }
    verified(&snapshot)
}

/// One value of the greatest length, beside a short one.
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

/// Tells of a build, whose memory must have stayed within the budget.
fn built(what: &str, rows: u64, file: &Path, start: Instant) -> Result<()> {
    let took = start.elapsed().as_secs_f64();
    let peak = peak_bytes().ok_or("the system does not tell")?;
    let len = fs::metadata(file)?.len();
    println!(
        "{rows} {what}: {took:.1} s, {:.1} ns an entry, {} MiB of memory at most, file {} MiB",
        took * 1e9 / rows as f64,
        peak / MIB,
        len / MIB
    );
    expect(peak <= BUDGET + BESIDES, "a build stays within its budget")
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
