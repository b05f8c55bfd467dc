//! `nuthatch chunks prune` and `clear`.

use super::folder_args::FolderArgs;
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print_summary;
use clap::Args;
use nuthatch_chunks::{Chunks, Clock, SystemClock};
use nuthatch_units::{bytes, parse_duration, parse_size};
use std::time::Duration;

const PRUNE_NOTES: &str = "\
Evicts segments in which all chunks have expired or were removed, then segments that were last
written longer ago than --older-than, then the least used segments until at most --to is in use. It
evicts whole segments, except pinned chunks and segments that other processes are writing. A chunk
that eviction moved because it was used counts as stored at the time of the move.

Examples:
  nuthatch chunks prune                          segments with only expired and removed chunks
  nuthatch chunks prune --to 2GiB
  nuthatch chunks prune --older-than 30d

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: there is no cache in the folder, another process has its lock,
     the summary cannot be printed (the error message contains it: the chunks are evicted)";

/// Evict old or little used chunks
#[derive(Debug, Args)]
#[command(after_long_help = PRUNE_NOTES)]
pub(super) struct Prune {
    #[command(flatten)]
    folder: FolderArgs,
    /// Maximum size afterwards, such as 512MiB or 10GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    to: Option<u64>,
    /// Evict chunks stored longer ago than this, such as 12h or 30d
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    older_than: Option<Duration>,
    #[command(flatten)]
    print: PrintArgs,
}

const CLEAR_NOTES: &str = "\
Pinned chunks stay, and so do segments that other processes are writing. To remove pinned chunks,
unpin them first, or delete the folder while no process uses it.

Examples:
  nuthatch chunks clear --cache /var/cache/data

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: there is no cache in the folder, another process has its lock,
     the summary cannot be printed (the error message contains it: the chunks are evicted)";

/// Evict all chunks that are not pinned
#[derive(Debug, Args)]
#[command(after_long_help = CLEAR_NOTES)]
pub(super) struct Clear {
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    print: PrintArgs,
}

/// The arguments for the output of an eviction.
#[derive(Debug, Args)]
struct PrintArgs {
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Print nothing
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

impl Prune {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let chunks = self.folder.open()?;
        let before = chunks.stat().used;
        if let Some(age) = self.older_than {
            let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            chunks.prune_older(SystemClock.now_ms().saturating_sub(age))?;
        }
        let after = chunks.prune(self.to)?;
        self.print.print(&chunks, before, after)
    }
}

impl Clear {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let chunks = self.folder.open()?;
        let before = chunks.stat().used;
        let after = chunks.clear()?;
        self.print.print(&chunks, before, after)
    }
}

impl PrintArgs {
    fn print(&self, chunks: &Chunks, before: u64, after: u64) -> Result<Outcome, Failure> {
        let line = if self.json {
            JsonObject::new().plain("before_bytes", before).plain("after_bytes", after).line()
        } else {
            let folder = chunks.path().display();
            format!("{folder}: {} in use before, {} now\n", bytes(before), bytes(after))
        };
        if !self.quiet {
            print_summary(&line)?;
        }
        Ok(Outcome::Success)
    }
}

fn parse_age(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a time such as 12h or 30d".to_owned())
}
