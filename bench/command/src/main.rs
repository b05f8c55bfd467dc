//! The `nuthatch-bench` command: benchmarks the engines on this machine against other systems.

mod cluster;
mod eviction;
mod failure;
mod fill;
mod snapshot;
mod soak;
mod store;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

const NOTES: &str = "\
Examples:
  nuthatch-bench snapshot
  nuthatch-bench eviction --file trace.csv
  nuthatch-bench fill --memory 4GiB
  nuthatch-bench store --rows 100000
  nuthatch-bench soak --seconds 60 --kills 5
  nuthatch-bench cluster --nodes 100

Exit status:
  0  everything was measured
  1  a check of `soak` failed
  2  the command line is wrong
  3  any other error: a file is missing or invalid, or Redis does not start

Absolute times differ from machine to machine: compare the ratios.";

/// Measure the engines of Nuthatch on this machine, against other systems
#[derive(Debug, Parser)]
#[command(
    name = "nuthatch-bench",
    version,
    after_long_help = NOTES,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    engine: Engine,
}

#[derive(Debug, Subcommand)]
enum Engine {
    Snapshot(snapshot::Snapshot),
    Eviction(eviction::command::Eviction),
    Fill(fill::command::Fill),
    Store(store::Store),
    Soak(soak::command::Soak),
    Cluster(cluster::Cluster),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output and is not a failure. An error while printing it is
            // ignored.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let result = match &cli.engine {
        Engine::Snapshot(snapshot) => snapshot.run(),
        Engine::Eviction(eviction) => eviction.run(),
        Engine::Fill(fill) => fill.run(),
        Engine::Store(store) => store.run(),
        Engine::Soak(soak) => soak.run(),
        Engine::Cluster(cluster) => cluster.run(),
    };
    match result {
        // A reader that closes the pipe early does not need the rest of the output.
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Check(message)) => {
            report(message);
            ExitCode::FAILURE
        }
        Err(Failure::Error(message)) => {
            report(message);
            ExitCode::from(3)
        }
    }
}

/// Writes a message to standard error. Errors while writing are ignored.
fn report(message: impl Display) {
    let _ = writeln!(io::stderr().lock(), "nuthatch-bench: {message}");
}
