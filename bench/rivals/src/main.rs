//! Benchmarks Nuthatch's snapshots against other key-value systems. `README.md` describes their
//! configuration.

mod cdb;
mod fst_map;
mod lmdb;
mod options;
mod redb_store;
mod redb_table;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use nuthatch_bench::store::{Rival, run_stores};
use nuthatch_bench::{Entrants, Result, entrant, own_systems, run_with};
use std::io::stdout;
use std::process::ExitCode;

/// The ordered stores. `RocksDB` requires its library and the feature `rocksdb`.
const STORES: &[Rival] = &[
    redb_store::REDB,
    #[cfg(feature = "rocksdb")]
    rocksdb::ROCKSDB,
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rivals: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "store") {
        let Some(options) = options::from_store(arguments.drain(1..))? else {
            println!("{}", options::STORE_USAGE);
            return Ok(());
        };
        return run_stores(&options, STORES, &mut stdout());
    }
    let Some(options) = options::from(arguments.into_iter())? else {
        println!("{}", options::USAGE);
        return Ok(());
    };
    run_with(&options, all_systems, &mut stdout())
}

fn all_systems() -> Entrants {
    let mut systems = own_systems();
    systems.push(entrant::<lmdb::Lmdb>());
    systems.push(entrant::<cdb::Cdb>());
    systems.push(entrant::<fst_map::Fst>());
    systems.push(entrant::<redb_table::Redb>());
    systems
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_bench::Options;
    use nuthatch_bench::store::StoreOptions;

    #[test]
    fn every_ordered_store_does_every_work() {
        let directory = std::env::temp_dir();
        let (rows, key_len, value_len, writes, rounds, json) = (2000, 5, 50, 4, 1, true);
        let options = StoreOptions { rows, key_len, value_len, writes, rounds, json, directory };
        let mut out = Vec::new();
        run_stores(&options, STORES, &mut out).expect("a run");
        let text = String::from_utf8(out).expect("text");
        for Rival { name, .. } in STORES {
            // One row for each workload: load, two kinds of scans, and writes.
            assert_eq!(text.matches(&format!("\"system\":\"{name}\"")).count(), 4, "{text}");
        }
    }

    /// Runs all systems. The run itself fails if a system finds a wrong number of keys.
    #[test]
    fn every_system_does_every_work() {
        let options =
            Options { keys: vec![2000], vectors: 20, rounds: 2, json: true, ..Options::default() };
        let mut out = Vec::new();
        run_with(&options, all_systems, &mut out).expect("a run");
        let text = String::from_utf8(out).expect("text");
        for system in ["lmdb", "cdb", "fst", "redb"] {
            let rows = text.matches(&format!("\"system\":\"{system}\"")).count();
            // One row for each result: build, open, three kinds of lookups, vectors, overhead and
            // memory.
            assert_eq!(rows, 8, "{system}\n{text}");
        }
    }
}
