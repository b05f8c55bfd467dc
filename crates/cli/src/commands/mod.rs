//! The commands, one file or folder for each: arguments, manual page, and execution.

mod build;
#[cfg(feature = "chunks")]
mod chunks;
mod cluster;
mod completions;
#[cfg(feature = "delivery")]
mod delivery;
mod dict;
mod diff;
mod doctor;
mod dump;
mod get;
mod info;
mod json_object;
mod merge;
mod ping;
mod populate;
mod serve;
mod store;
mod tier;
mod top;
mod verify;

use crate::outcome::{Failure, Outcome};
use clap::{CommandFactory, Parser, Subcommand};

const ABOUT: &str = "\
Nuthatch builds and reads snapshots: immutable files of typed keys and values, mapped into memory \
by any number of processes and read in place. It serves a cache to Redis and memcached clients, \
reads and writes ordered stores, and keeps parts of remote objects on local disk.";

const NOTES: &str = "\
Examples:
  nuthatch build users.jsonl -o users.nut     build a snapshot
  nuthatch get users.nut user:1.name          look up a key
  nuthatch dump users.nut | head              print its first entries
  nuthatch populate users.toml                a snapshot of a database, checked and published
  nuthatch publish users.nut s3://bucket/u    its current version, for other machines
  nuthatch follow s3://bucket/u /srv/users    keep a folder at the current version
  nuthatch serve --memory 4GiB                a cache server for Redis and memcached
  nuthatch cluster status                     the nodes of a cluster of servers, and their slots
  nuthatch top                                live metrics of the server
  nuthatch ping --wait 30s                    whether the server is healthy, for scripts
  nuthatch doctor                             what to change on this machine for a server
  nuthatch store scan db --prefix user:       rows of an ordered store
  nuthatch tier stat DIR                      what the disk tier of a stopped server has
  nuthatch chunks get https://host/file       a remote object, from local disk the second time
  nuthatch dict train --from docs/ -o d.zdict a dictionary for small values
  nuthatch build --help                       the manual page of a command

Exit status:
  0  success
  1  a key or an object does not exist, a condition does not hold, snapshots differ, a server or a
     cluster is not healthy, this machine has a problem, or chunks of a cache or items of a disk
     tier were damaged
  2  invalid command line
  3  any other error, for example: a file is missing, damaged or invalid, or the output cannot be
     written; what was done before that stays, and the error message says so
  101  a bug: a thread of a server (serve, store serve, chunks serve) panicked

Errors are printed on standard error. They begin with \"nuthatch:\" and, for input files, the file,
line and column; errors of the command line begin with \"error:\".";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "nuthatch",
    version,
    about = "Typed key-value files, a cache server, ordered stores, and a cache of remote objects",
    long_about = ABOUT,
    after_long_help = NOTES,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Build(build::Build),
    Get(get::Get),
    Dump(dump::Dump),
    Info(info::Info),
    Verify(verify::Verify),
    Diff(diff::Diff),
    Merge(merge::Merge),
    Populate(populate::Populate),
    #[cfg(feature = "delivery")]
    Publish(delivery::publish::Publish),
    #[cfg(feature = "delivery")]
    Generations(delivery::generations::Generations),
    #[cfg(feature = "delivery")]
    Follow(delivery::follow::Follow),
    Serve(serve::Serve),
    Cluster(cluster::Cluster),
    Top(top::Top),
    Ping(ping::Ping),
    Doctor(doctor::Doctor),
    Store(store::Store),
    Tier(tier::Tier),
    #[cfg(feature = "chunks")]
    Chunks(chunks::Chunks),
    Dict(dict::Dict),
    Completions(completions::Completions),
}

impl Cli {
    pub(crate) fn from_arguments() -> Result<Self, clap::Error> {
        Self::try_parse()
    }

    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        match &self.command {
            Command::Build(build) => build.run(),
            Command::Get(get) => get.run(),
            Command::Dump(dump) => dump.run(),
            Command::Info(info) => info.run(),
            Command::Verify(verify) => verify.run(),
            Command::Diff(diff) => diff.run(),
            Command::Merge(merge) => merge.run(),
            Command::Populate(populate) => populate.run(),
            #[cfg(feature = "delivery")]
            Command::Publish(publish) => publish.run(),
            #[cfg(feature = "delivery")]
            Command::Generations(generations) => generations.run(),
            #[cfg(feature = "delivery")]
            Command::Follow(follow) => follow.run(),
            Command::Serve(serve) => serve.run(),
            Command::Cluster(cluster) => cluster.run(),
            Command::Top(top) => top.run(),
            Command::Ping(ping) => ping.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Store(store) => store.run(),
            Command::Tier(tier) => tier.run(),
            #[cfg(feature = "chunks")]
            Command::Chunks(chunks) => chunks.run(),
            Command::Dict(dict) => dict.run(),
            Command::Completions(completions) => completions.run(Self::command()),
        }
    }
}
