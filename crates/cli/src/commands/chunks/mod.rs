//! `nuthatch chunks`: the cache of remote objects in a folder.

mod evict;
mod json;
mod list;
mod objects;
mod place;
mod stat;
mod told;
mod verify;

use super::{Answer, Failure};
use clap::{Args, Subcommand};

const ABOUT: [&str; 2] = [
    "Look after a cache of remote objects",
    "

A cache is a folder with parts of remote objects, which any number of processes read, fill and \
evict at once, under one limit. All commands here are safe while others use it.",
];

const NOTES: &str = "\
The folder is --cache, or $NUTHATCH_CACHE, or nuthatch/chunks below $XDG_CACHE_HOME or ~/.cache.

Examples:
  nuthatch chunks stat
  nuthatch chunks list --sort put
  nuthatch chunks pin https://host/model.bin     it stays when others are evicted
  nuthatch chunks prune --to 2GiB --older-than 30d
  nuthatch chunks verify --cache /var/cache/data

Exit status:
  0  all went well
  1  verify: chunks were damaged; pin, unpin, remove: an object is not there
  2  the command line is wrong
  3  anything else: there is no cache in the folder, another process has it to itself";

/// Look after a cache of remote objects.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
#[command(arg_required_else_help = true)]
pub(crate) struct Chunks {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    Stat(stat::Stat),
    List(list::List),
    Verify(verify::Verify),
    Prune(evict::Prune),
    Clear(evict::Clear),
    Pin(objects::Pin),
    Unpin(objects::Unpin),
    Remove(objects::Remove),
}

impl Chunks {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        match &self.act {
            Act::Stat(stat) => stat.run(),
            Act::List(list) => list.run(),
            Act::Verify(verify) => verify.run(),
            Act::Prune(prune) => prune.run(),
            Act::Clear(clear) => clear.run(),
            Act::Pin(pin) => pin.run(),
            Act::Unpin(unpin) => unpin.run(),
            Act::Remove(remove) => remove.run(),
        }
    }
}
