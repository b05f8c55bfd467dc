//! Benchmarks ordered stores: `nuthatch-bench store`.
//!
//! All stores load the same rows in key order. Each round then runs every workload once and starts
//! with another one. Results are medians of the rounds. Every scan adds up the lengths and one byte
//! of each key and value, and fails if the sum differs from the sum of the rows.

mod figures;
mod lmdb;
mod nuthatch;
mod report;
mod rows;
mod writes;

use figures::{LMDB, OWN, StoreFigure, median};
use lmdb::Lmdb;
use nuthatch::Store;
use rows::Other;
pub use rows::{Bounds, Key, Ordered, Rival, StoreOptions, StoreRows, Sum};

use crate::Result;
use crate::folder::Folder;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The name of a workload, the name of a system, and a function that runs the workload once and
/// returns its checksum.
type Work<'s> = (&'static str, &'static str, Box<dyn Fn() -> Result<Sum> + 's>);

/// Measures Nuthatch's store against plain LMDB and `rivals`.
pub fn run_stores(options: &StoreOptions, rivals: &[Rival], out: &mut dyn Write) -> Result<()> {
    if options.rounds == 0 || options.rows < 10 {
        return Err("there is at least one round, and ten rows".into());
    }
    let folder = Folder::create(&options.directory)?;
    let rows = StoreRows::new(options)?;
    let mut figures = Vec::new();
    let lmdb = loaded(LMDB, rows, folder.path(), &mut figures, Lmdb::load)?;
    let own = loaded(OWN, rows, folder.path(), &mut figures, Store::load)?;
    let mut others: Vec<Other> = Vec::new();
    for Rival { name, load } in rivals {
        others.push((name, loaded(name, rows, folder.path(), &mut figures, load)?));
    }
    scans(options, rows, &lmdb, &own, &others, &mut figures)?;
    figures.extend(writes::race(options, rows, &lmdb, &own, &others)?);
    if options.json {
        report::json(&figures, out)?;
    } else {
        report::table(options, &figures, out)?;
    }
    Ok(())
}

fn loaded<S>(
    name: &'static str,
    rows: StoreRows,
    folder: &Path,
    figures: &mut Vec<StoreFigure>,
    load: impl Fn(StoreRows, &Path) -> Result<S>,
) -> Result<S> {
    let folder = folder.join(name);
    std::fs::create_dir(&folder)?;
    let start = Instant::now();
    let system = load(rows, &folder)?;
    let per_second = f64::from(rows.count) / start.elapsed().as_secs_f64();
    let first = figures.first().map(|figure| (LMDB, per_second / figure.per_second));
    let (against, p99_us) = (first, None);
    figures.push(StoreFigure { work: "load", system: name, per_second, against, p99_us });
    Ok(system)
}

fn scans(
    options: &StoreOptions,
    rows: StoreRows,
    lmdb: &Lmdb,
    own: &Store,
    others: &[Other],
    figures: &mut Vec<StoreFigure>,
) -> Result<()> {
    let keys = rows.range();
    let range = Some((keys[0].bytes(), keys[1].bytes()));
    let mut works: Vec<Work<'_>> = vec![
        ("scan", LMDB, Box::new(|| lmdb.scan(None))),
        ("scan", OWN, Box::new(|| own.scan(None))),
        ("scan_iterator", OWN, Box::new(|| own.scan_iterator())),
        ("scan_batches", OWN, Box::new(|| own.scan_batches())),
        ("scan_stream", OWN, Box::new(|| own.scan_stream())),
        ("scan_1_thread", OWN, Box::new(|| own.scan_parallel(1))),
        ("scan_2_threads", OWN, Box::new(|| own.scan_parallel(2))),
        ("scan_range", LMDB, Box::new(move || lmdb.scan(range))),
        ("scan_range", OWN, Box::new(move || own.scan(range))),
    ];
    for (name, other) in others {
        works.push(("scan", name, Box::new(|| other.scan(None))));
        works.push(("scan_range", name, Box::new(move || other.scan(range))));
    }
    let (all, within) = (rows.sum(None)?, rows.sum(range)?);
    let mut times = vec![Vec::new(); works.len()];
    // The first round maps the pages and is not timed.
    for round in 0..=options.rounds {
        for nth in 0..works.len() {
            let nth = (nth + round) % works.len();
            let (work, system, scan) = &works[nth];
            let start = Instant::now();
            let sum = scan()?;
            let time = start.elapsed().as_secs_f64();
            let expected = if *work == "scan_range" { within } else { all };
            if sum != expected {
                return Err(format!("{system}: {work} found {sum:?}, not {expected:?}").into());
            }
            if round > 0 {
                times[nth].push(sum.rows as f64 / time);
            }
        }
    }
    let rates: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    let rate = |work: &str, system: &str| {
        let at = works.iter().position(|(w, s, _)| *w == work && *s == system);
        at.map_or(f64::NAN, |at| rates[at])
    };
    for ((work, system, _), per_second) in works.iter().zip(&rates) {
        let against = match *work {
            _ if *system == LMDB => None,
            "scan_2_threads" => Some(("one thread", rate("scan_1_thread", OWN))),
            "scan_range" => Some((LMDB, rate("scan_range", LMDB))),
            _ => Some((LMDB, rate("scan", LMDB))),
        };
        let against = against.map(|(name, rate)| (name, per_second / rate));
        let (per_second, p99_us) = (*per_second, None);
        figures.push(StoreFigure { work, system, per_second, against, p99_us });
    }
    Ok(())
}
