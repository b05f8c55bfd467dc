//! `nuthatch store`: ordered stores in a folder.

mod backup;
mod compact;
mod count;
mod credentials;
mod delete;
mod dump;
mod get;
mod keep_changes;
mod load;
mod open;
mod put;
mod range_args;
mod remote_store;
mod row_printer;
mod scan;
mod serve;
mod stat;
mod store_args;
mod verify;
mod watch;

use crate::outcome::{Failure, Outcome};
use clap::{Args, Subcommand};

pub(crate) use credentials::Credentials;
pub(crate) use keep_changes::keep_changes;
pub(crate) use open::open_store;

const ABOUT: [&str; 2] = [
    "Read, write and manage an ordered store",
    "

A store is a folder with tables of ordered keys and values, which any number of processes use at \
once. Its files are those of LMDB 0.9: mdb_stat and mdb_dump read them while no process has them \
open.",
];

const NOTES: &str = "\
Examples:
  nuthatch store put db user:1 Ada               creates the store if missing
  nuthatch store get db user:1 user:2
  nuthatch store scan db --prefix user: --limit 10
  nuthatch store load db users.jsonl             the formats of \"nuthatch build\"
  nuthatch store dump db > users.jsonl
  nuthatch store watch db --keep 100000          prints changes as they are committed
  nuthatch store backup db /backups/today        works while others write
  nuthatch store serve db                        over gRPC; grpc://HOST:PORT is then a PATH

Exit status:
  0  success
  1  get, del: a key is missing; put: the condition does not hold
  2  invalid command line
  3  any other error, for example: the store is missing, damaged or full, the table is missing, the
     output cannot be written

A command that has changed the store but cannot print its summary also exits with 3: the change is
not undone, and the error message contains the summary. If the reader of the output closes it, as
\"head\" does, the status is 0.";

/// Read, write and manage an ordered store.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
#[command(arg_required_else_help = true)]
pub(crate) struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Put(put::Put),
    Get(get::Get),
    Del(delete::Del),
    Scan(scan::Scan),
    Count(count::Count),
    Load(load::Load),
    Dump(dump::Dump),
    Stat(stat::Stat),
    Backup(backup::Backup),
    Compact(compact::Compact),
    Verify(verify::Verify),
    Watch(watch::Watch),
    Serve(serve::Serve),
}

impl Store {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        match &self.command {
            Command::Put(put) => put.run(),
            Command::Get(get) => get.run(),
            Command::Del(del) => del.run(),
            Command::Scan(scan) => scan.run(),
            Command::Count(count) => count.run(),
            Command::Load(load) => load.run(),
            Command::Dump(dump) => dump.run(),
            Command::Stat(stat) => stat.run(),
            Command::Backup(backup) => backup.run(),
            Command::Compact(compact) => compact.run(),
            Command::Verify(verify) => verify.run(),
            Command::Watch(watch) => watch.run(),
            Command::Serve(serve) => serve.run(),
        }
    }
}
