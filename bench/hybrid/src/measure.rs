//! The process of one system: fills it, and runs a round for each line on standard input.

use crate::figures::{Values, line};
use crate::options::Options;
use crate::process::{Usage, allocated_bytes, reset_peak};
use crate::registry::SYSTEMS;
use crate::systems::{Limits, Session, System};
use crate::workload::Workload;
use hdrhistogram::Histogram;
use nuthatch_bench::{Draws, Result, peak_bytes, resident_bytes};
use std::io::{Write, stdin, stdout};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Gets between two looks at the end of a round.
const GETS_PER_STEP: u32 = 16;
/// Draws whose time is measured before the system is opened.
const TIMED_DRAWS: u32 = 200_000;

/// What a thread has counted in a round.
struct Tally {
    gets: u64,
    hits: u64,
    /// In nanoseconds.
    latencies: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self> {
        // Up to one minute, with three significant digits.
        let latencies = Histogram::new_with_bounds(1, 60_000_000_000, 3)?;
        Ok(Self { gets: 0, hits: 0, latencies })
    }
}

/// Measures a system for the parent process, until that closes standard input.
pub(crate) fn run(options: &Options, system: &str) -> Result<()> {
    let workload = Arc::new(Workload::new(options.memory, options.value_lens[0]));
    let mut draws: Vec<_> = (0..options.threads).map(|thread| workload.draws(thread)).collect();
    let draw_cpu_us = draw_cpu_us(&mut draws[0])?;
    let base = resident_bytes().ok_or("the system does not report the resident memory")?;
    reset_peak()?;

    let folder = options.directory.join(system);
    let open = SYSTEMS.iter().find(|(name, _)| *name == system).ok_or("no such system")?.1;
    let (memory, disk) = (options.memory, options.disk);
    let limits = Limits { memory, disk, folder: folder.clone(), workload: Arc::clone(&workload) };
    let system = open(&limits)?;
    let (start, before) = (Instant::now(), Usage::now()?);
    fill(&*system, &workload)?;
    let seconds = start.elapsed().as_secs_f64();
    let written = Usage::now()?.written_bytes - before.written_bytes;
    gets(&*system, &workload, &mut draws, Duration::from_secs(options.warmup))?;
    reply(&[seconds, written as f64, draw_cpu_us, base as f64])?;

    let time = Duration::from_secs(options.seconds);
    let mut request = String::new();
    while stdin().read_line(&mut request)? > 0 {
        reply(&round(&*system, &workload, &mut draws, time, (&folder, base))?)?;
        request.clear();
    }
    Ok(())
}

fn reply(values: &[f64]) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{}", line(values))?;
    Ok(out.flush()?)
}

/// Returns the CPU time of drawing a key, in microseconds.
fn draw_cpu_us(draws: &mut Draws) -> Result<f64> {
    let before = Usage::now()?.cpu_seconds;
    let sum = (0..TIMED_DRAWS).fold(0_u64, |sum, _| sum + u64::from(draws.rank()));
    std::hint::black_box(sum);
    Ok((Usage::now()?.cpu_seconds - before) * 1e6 / f64::from(TIMED_DRAWS))
}

fn fill(system: &dyn System, workload: &Workload) -> Result<()> {
    let mut session = system.session()?;
    let mut value = Vec::new();
    for number in workload.in_random_order() {
        workload.write_value(number, &mut value);
        session.fill(number, &value)?;
    }
    drop(session);
    system.settle()
}

/// Runs a round and returns its figures.
fn round(
    system: &dyn System,
    workload: &Workload,
    draws: &mut [Draws],
    time: Duration,
    (folder, base): (&Path, u64),
) -> Result<Values<11>> {
    let (start, before) = (Instant::now(), Usage::now()?);
    let tally = gets(system, workload, draws, time)?;
    let (seconds, after) = (start.elapsed().as_secs_f64(), Usage::now()?);
    let gets = tally.gets as f64;
    let micros = |share| tally.latencies.value_at_quantile(share) as f64 / 1e3;
    let above_base = |bytes: Option<u64>| bytes.unwrap_or_default() as f64 - base as f64;
    Ok([
        gets / seconds,
        tally.hits as f64 / gets,
        micros(0.5),
        micros(0.99),
        micros(0.999),
        above_base(peak_bytes()),
        above_base(resident_bytes()),
        (after.cpu_seconds - before.cpu_seconds) * 1e6 / gets,
        (after.read_bytes - before.read_bytes) as f64 / gets,
        (after.written_bytes - before.written_bytes) as f64 / gets,
        allocated_bytes(folder)? as f64,
    ])
}

/// Reads values with all threads for this time, and stores those that are missing.
fn gets(
    system: &dyn System,
    workload: &Workload,
    draws: &mut [Draws],
    time: Duration,
) -> Result<Tally> {
    let end = Instant::now() + time;
    let tallies: Vec<Result<Tally>> = thread::scope(|scope| {
        let threads: Vec<_> = draws
            .iter_mut()
            .map(|draws| scope.spawn(move || gets_of_thread(system, workload, draws, end)))
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(tally) => tally,
            Err(_) => Err("a thread panicked".into()),
        });
        joined.collect()
    });
    let mut sum = Tally::new()?;
    for tally in tallies {
        let tally = tally?;
        sum.gets += tally.gets;
        sum.hits += tally.hits;
        sum.latencies.add(&tally.latencies)?;
    }
    Ok(sum)
}

fn gets_of_thread(
    system: &dyn System,
    workload: &Workload,
    draws: &mut Draws,
    end: Instant,
) -> Result<Tally> {
    let mut session = system.session()?;
    let mut tally = Tally::new()?;
    let mut value = Vec::new();
    while Instant::now() < end {
        for _ in 0..GETS_PER_STEP {
            let number = workload.of_rank(draws.rank());
            if get(&mut *session, number, &mut tally)? {
                continue;
            }
            workload.write_value(number, &mut value);
            session.set(number, &value)?;
        }
    }
    Ok(tally)
}

/// Reads a value, and returns whether it was found.
fn get(session: &mut dyn Session, number: u32, tally: &mut Tally) -> Result<bool> {
    let start = Instant::now();
    let found = session.get(number)?;
    let nanoseconds = start.elapsed().as_nanos();
    tally.latencies.saturating_record(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
    tally.gets += 1;
    match found {
        Some(true) => tally.hits += 1,
        Some(false) => return Err(format!("the value of key {number} is wrong").into()),
        None => {}
    }
    Ok(found.is_some())
}
