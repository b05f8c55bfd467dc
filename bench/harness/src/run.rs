//! Runs all workloads on all systems, for each number of keys.

use crate::Result;
use crate::entrant::{Entrant, entrant};
use crate::folder::Folder;
use crate::hash_map::HashMap;
use crate::lookups::Lookups;
use crate::nuthatch::Nuthatch;
use crate::race::Race;
use crate::report::{self, Figure};
use crate::rows::Rows;
use crate::work::Work;
use std::io::Write;
use std::path::PathBuf;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of short texts. Each number is measured separately.
    pub keys: Vec<u32>,
    /// Number of vectors. Zero skips this workload.
    pub vectors: u32,
    /// Number of rounds of each workload.
    pub rounds: usize,
    /// Whether to print rows in JSON instead of tables.
    pub json: bool,
    /// The directory in which a run creates a temporary folder for its files.
    pub directory: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keys: vec![1_000_000, 20_000_000],
            vectors: 100_000,
            rounds: 5,
            json: false,
            directory: std::env::temp_dir(),
        }
    }
}

/// The systems of a race, without data.
pub type Entrants = Vec<Box<dyn Entrant>>;

/// Returns the systems of [`run`]: the hash map, and snapshots in the page cache and in huge pages.
pub fn own_systems() -> Entrants {
    vec![entrant::<HashMap>(), entrant::<Nuthatch<false>>(), entrant::<Nuthatch<true>>()]
}

/// Measures Nuthatch against the hash map, and prints the results.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<()> {
    run_with(options, own_systems, out)
}

/// Measures systems, and prints the results. `systems` is called once for each number of keys.
pub fn run_with(
    options: &Options,
    systems: impl Fn() -> Entrants,
    out: &mut dyn Write,
) -> Result<()> {
    if options.rounds == 0 || options.keys.contains(&0) {
        return Err("keys and rounds are at least one".into());
    }
    let folder = Folder::create(&options.directory)?;
    let sizes = options.keys.iter().map(|keys| (*keys, true));
    let vectors = Some((options.vectors, false)).filter(|vectors| vectors.0 > 0);
    let mut all = Vec::new();
    for (keys, are_texts) in sizes.chain(vectors) {
        if !options.json {
            let what = if are_texts { "keys" } else { "vectors of 128 f32" };
            report::heading(what, keys, options.rounds, out)?;
        }
        let race = Race::new(systems(), folder.path(), options.rounds);
        let figures = if are_texts { texts(race, keys)? } else { vectors_of(race, keys)? };
        if options.json {
            all.extend(figures);
        } else {
            report::table(&figures, out)?;
        }
    }
    if options.json {
        report::json(&all, out)?;
    }
    Ok(())
}

/// Runs all workloads on short texts.
fn texts(mut race: Race<'_>, keys: u32) -> Result<Vec<Figure>> {
    // The rows are freed before the lookups, which have copies of their keys.
    race.build(&Rows::of_texts(keys))?;
    race.open()?;
    let lookups = Lookups::in_texts(keys);
    let works = [Work::GetHit, Work::GetMiss, Work::GetMany, Work::GetHit2Threads];
    race.look_up(&works, &lookups.keys())?;
    Ok(race.figures(keys))
}

fn vectors_of(mut race: Race<'_>, keys: u32) -> Result<Vec<Figure>> {
    race.build(&Rows::of_vectors(keys))?;
    race.open()?;
    race.look_up(&[Work::GetVector], &Lookups::in_vectors(keys).keys())?;
    let mut figures = race.figures(keys);
    // The results of the other workloads are reported for short texts only.
    figures.retain(|figure| figure.work == Work::GetVector);
    Ok(figures)
}
