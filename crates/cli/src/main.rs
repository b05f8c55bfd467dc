//! The `nuthatch` command: arguments in, exit status out. The folders import in one direction, down
//! this list:
//!
//! | folder or file | content |
//! |---|---|
//! | `commands/` | the commands, one file or folder for each; `serve` uses `store` |
//! | `settings/` | the settings of `nuthatch serve`: table, file, environment, flags |
//! | `arguments/` | arguments that several commands share |
//! | `files/` | reading whole files, atomic replacement of files |
//! | `process/` | signals and panics of servers, memory and open files |
//! | `logs.rs` | the log |
//! | `terminal/` | standard output, messages, progress |
//! | `outcome.rs` | the outcome and the failure of a command |
//! | `lib.rs` | values as text, which the library of this package exports |

mod arguments;
mod commands;
mod files;
mod logs;
mod outcome;
mod process;
mod settings;
mod terminal;

use commands::Cli;
use outcome::{Failure, Outcome};
use std::process::ExitCode;

/// The exit statuses, which `nuthatch --help` documents.
mod status {
    pub(crate) const MISSING: u8 = 1;
    pub(crate) const USAGE: u8 = 2;
    pub(crate) const FAILURE: u8 = 3;
}

fn main() -> ExitCode {
    let cli = match Cli::from_arguments() {
        Ok(cli) => cli,
        Err(error) => {
            // Help is written to stdout and is not a failure. If it cannot be written, nothing is
            // lost.
            let _ = error.print();
            return if error.use_stderr() { status::USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    // While this is the only thread.
    if let Err(error) = nuthatch_listen::inherit_sockets() {
        return fail(&error.to_string(), status::FAILURE);
    }
    match cli.run() {
        Ok(Outcome::NotFound | Outcome::Damaged) => status::MISSING.into(),
        Ok(Outcome::Failed) => status::FAILURE.into(),
        // A reader that closes the output needs no more of it.
        Ok(Outcome::Success) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => fail(&message, status::USAGE),
        Err(Failure::Error(message)) => fail(&message, status::FAILURE),
    }
}

fn fail(message: &str, status: u8) -> ExitCode {
    terminal::print_failure(message);
    status.into()
}
