//! `nuthatch populate`: starts the program that has the drivers of databases.

use crate::outcome::{Failure, Outcome};
use crate::process::raise_file_limit;
use clap::Args;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "nuthatch-populate";

/// Build a snapshot from databases and files, check it, and publish it
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Populate {
    /// Arguments of nuthatch-populate, the program with the drivers of databases
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Populate {
    /// Replaces this process by the program: the one beside this program, else the one in PATH.
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        // To publish a set, all its shards are open at the same time.
        raise_file_limit();
        let program = beside().unwrap_or_else(|| PROGRAM.into());
        let error = Command::new(&program).args(&self.arguments).exec();
        Err(Failure::Error(match error.kind() {
            ErrorKind::NotFound => format!(
                "{PROGRAM}: expected this program, which has the drivers of databases, beside \
                 nuthatch or in PATH, found none; its source is crates/populate"
            ),
            _ => format!("{}: start: {error}", program.display()),
        }))
    }
}

/// Returns the path of the program beside this one, if it is there.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    path.is_file().then_some(path)
}
