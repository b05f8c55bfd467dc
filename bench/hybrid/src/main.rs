//! Compares caches with a disk tier, as libraries. `README.md` describes the workload and the
//! configuration of the systems.

mod figures;
mod foyer_cache;
mod measure;
mod nuthatch;
mod options;
mod process;
mod race;
mod registry;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod systems;
mod workload;

use options::{HELP, Options};
use std::io::stdout;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("hybrid: {error}. See hybrid --help.");
            return ExitCode::from(2);
        }
    };
    let result = match &options.measured {
        Some(system) => measure::run(&options, system),
        None => race::run(&options, &mut stdout()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hybrid: {error}");
            ExitCode::FAILURE
        }
    }
}
