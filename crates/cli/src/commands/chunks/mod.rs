//! `nuthatch chunks`: the cache of remote objects in a folder.

mod byte_range;
mod folder_args;
mod freshness_args;
mod get;
mod header_args;
mod limit_args;
mod list;
mod object_name;
mod output;
mod pin;
mod prune;
mod serve;
mod stat;
mod verify;

use crate::outcome::{Failure, Outcome};
use clap::{Args, Subcommand};

const ABOUT: [&str; 2] = [
    "Read remote objects through a cache, and manage the cache",
    "

A cache is a folder with parts of remote objects, which any number of processes read, fill and \
evict at once, under one limit. All commands are safe while others use it.",
];

const NOTES: &str = "\
The folder is --cache, or $NUTHATCH_CACHE, or nuthatch/chunks below $XDG_CACHE_HOME or ~/.cache.

Examples:
  nuthatch chunks get https://host/model.bin -o model.bin
  nuthatch chunks serve --origin https://host/data/
  nuthatch chunks stat
  nuthatch chunks list --sort put
  nuthatch chunks pin https://host/model.bin     protect it from eviction
  nuthatch chunks prune --to 2GiB --older-than 30d
  nuthatch chunks verify --cache /var/cache/data

Exit status:
  0  success
  1  get: the object does not exist; pin, unpin, remove: an object is not in the cache; verify:
     chunks were damaged
  2  invalid command line
  3  any other error, for example: the origin cannot be reached, there is no cache in the folder

A command that has changed the cache and cannot print its summary ends with 3, too: the change is
not undone, and the error message contains the summary.";

/// Read remote objects through a cache, and manage the cache.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
#[command(arg_required_else_help = true)]
pub(crate) struct Chunks {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Get(get::Get),
    Serve(Box<serve::Serve>),
    Stat(stat::Stat),
    List(list::List),
    Verify(verify::Verify),
    Prune(prune::Prune),
    Clear(prune::Clear),
    Pin(pin::Pin),
    Unpin(pin::Unpin),
    Remove(pin::Remove),
}

impl Chunks {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        match &self.command {
            Command::Get(get) => get.run(),
            Command::Serve(serve) => serve.run(),
            Command::Stat(stat) => stat.run(),
            Command::List(list) => list.run(),
            Command::Verify(verify) => verify.run(),
            Command::Prune(prune) => prune.run(),
            Command::Clear(clear) => clear.run(),
            Command::Pin(pin) => pin.run(),
            Command::Unpin(unpin) => unpin.run(),
            Command::Remove(remove) => remove.run(),
        }
    }
}
