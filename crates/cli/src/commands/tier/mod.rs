//! `nuthatch tier`: the folder with a cache's items on disk.

mod stat;
mod verify;

use crate::outcome::{Failure, Outcome};
use clap::{Args, Subcommand};
use std::path::PathBuf;

const ABOUT: [&str; 2] = [
    "Look into a folder with the items of a cache",
    "

The dump of `serve --warm-restart` and the disk tier of `serve --disk` are both item files in the \
folder `items` of --data-dir. The commands only read, and only while no server uses the folder.",
];

const NOTES: &str = "\
Examples:
  nuthatch tier stat /var/lib/nuthatch/items
  nuthatch tier verify /var/lib/nuthatch/items

Exit status:
  0  success
  1  verify: items are damaged
  2  invalid command line
  3  any other error, for example: a server uses the folder, or it is not a folder of items";

/// Look into a folder with the items of a cache.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
#[command(arg_required_else_help = true)]
pub(crate) struct Tier {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Stat(stat::Stat),
    Verify(verify::Verify),
}

/// The folder with the items.
#[derive(Clone, Debug, Args)]
struct FolderArg {
    /// The folder `items` in the --data-dir of a server
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Tier {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        match &self.command {
            Command::Stat(stat) => stat.run(),
            Command::Verify(verify) => verify.run(),
        }
    }
}
