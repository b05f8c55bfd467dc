//! A whole run: every size, every work, every system.

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

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of short texts, each measured for itself.
    pub keys: Vec<u32>,
    /// Number of vectors; none leaves that work out.
    pub vectors: u32,
    /// How often each system does each work.
    pub rounds: usize,
    /// Whether to print rows for programs rather than tables.
    pub json: bool,
    /// Where the files go, in a folder of their own that is removed at the end.
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

/// Systems, closed and empty, for one race.
pub type Entrants = Vec<Box<dyn Entrant>>;

/// The systems of [`run`]: the hash map, and snapshots in two residencies.
pub fn own_systems() -> Entrants {
    vec![entrant::<HashMap>(), entrant::<Nuthatch<false>>(), entrant::<Nuthatch<true>>()]
}

/// Measures Nuthatch beside the hash map and prints what it found.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<()> {
    run_with(options, own_systems, out)
}

/// Measures these systems beside each other and prints what it found. They are asked for once for
/// each size, since their types are theirs.
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

/// All works on short texts.
fn texts(mut race: Race<'_>, keys: u32) -> Result<Vec<Figure>> {
    // The rows go before lookups start: these have their own copy of the keys they need.
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
    // The other works are told of short texts; a second set of figures would blur them.
    figures.retain(|figure| figure.work == Work::GetVector);
    Ok(figures)
}
