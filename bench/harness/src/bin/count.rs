//! Executes lookups whose instructions `bench/instructions` counts, and prints their number.

use nuthatch_bench::{Built, Folder, HashMap, Lookups, Nuthatch, Result, Rows, System, loops};
use std::env;
use std::process::ExitCode;

const USAGE: &str = "usage: count nuthatch|hashbrown get_hit|get_miss|get_many|get_vector KEYS";

fn main() -> ExitCode {
    match run() {
        Ok(lookups) => {
            println!("{lookups}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("count: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<usize> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [system, work, keys] = &arguments[..] else { return Err(USAGE.into()) };
    let keys = keys.parse().map_err(|_| USAGE)?;
    match &system[..] {
        "nuthatch" => count::<Nuthatch<false>>(work, keys),
        "hashbrown" => count::<HashMap>(work, keys),
        _ => Err(USAGE.into()),
    }
}

fn count<S: System>(work: &str, keys: u32) -> Result<usize> {
    let folder = Folder::create(&env::temp_dir())?;
    let (rows, lookups) = if work == "get_vector" {
        (Rows::of_vectors(keys), Lookups::in_vectors(keys))
    } else {
        (Rows::of_texts(keys), Lookups::in_texts(keys))
    };
    let store = match S::build(&rows, folder.path())? {
        Built::Files => S::open(folder.path())?,
        Built::Memory(store) => store,
    };
    let keys = lookups.keys();
    let mut reader = store.reader()?;
    match work {
        "get_hit" => collected(|| loops::texts(&mut reader, &keys.hits))?,
        "get_miss" => collected(|| loops::texts(&mut reader, &keys.misses))?,
        "get_many" => collected(|| loops::batches(&mut reader, &keys.hits))?,
        "get_vector" => collected(|| loops::vectors(&mut reader, &keys.hits))?,
        _ => return Err(USAGE.into()),
    };
    Ok(keys.hits.len())
}

/// Runs the lookups. The script passes the name of this function to callgrind, which counts only
/// the instructions in it.
#[inline(never)]
fn collected<T>(lookups: impl FnOnce() -> T) -> T {
    lookups()
}
