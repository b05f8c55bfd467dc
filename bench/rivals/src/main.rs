//! Nuthatch's snapshots beside other key-value systems. `README.md` says how each is set up.

mod cdb;
mod fst_map;
mod lmdb;
mod options;
mod redb_table;

use nuthatch_bench::{Entrants, Result, entrant, own_systems, run_with};
use std::io::stdout;
use std::process::ExitCode;

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
    let Some(options) = options::from(std::env::args().skip(1))? else {
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

    /// The run itself fails when a system finds too few keys or too many.
    #[test]
    fn every_system_does_every_work() {
        let options =
            Options { keys: vec![2000], vectors: 20, rounds: 2, json: true, ..Options::default() };
        let mut out = Vec::new();
        run_with(&options, all_systems, &mut out).expect("a run");
        let text = String::from_utf8(out).expect("text");
        for system in ["lmdb", "cdb", "fst", "redb"] {
            let rows = text.matches(&format!("\"system\":\"{system}\"")).count();
            // build, open, three kinds of lookups, vectors, overhead, memory
            assert_eq!(rows, 8, "{system}\n{text}");
        }
    }
}
