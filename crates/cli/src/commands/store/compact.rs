//! `nuthatch store compact`.

use super::store_args::FolderArgs;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print_summary;
use clap::Args;
use nuthatch_store::compact_with;
use nuthatch_units::bytes;

const COMPACT_NOTES: &str = "\
Writes a copy without free pages, and replaces the old file when the copy is complete. The copy
needs additional disk space of up to the size of the store. No process may have the store open.
Processes that open it meanwhile wait until it is compacted; commands warn after a second.

A damaged store is not changed: all pages are verified before they are copied. A store with lost
pages (see \"verify\") is not changed either; to free their space, dump it and load the rows into a
new store. A folder on a network filesystem is refused unless --allow-network-filesystem is given,
because locks of other machines may not hold there. The file keeps its owner and its mode; if this
user may not set that owner, nothing is changed.

Examples:
  nuthatch store compact db

Exit status:
  0  the store has no free pages
  2  invalid command line
  3  any other error, for example: a process has the store open, it is damaged or has lost pages,
     the folder is on a network filesystem (without --allow-network-filesystem), the disk is full;
     the store is not changed. Or the summary cannot be printed (the error message contains it: the
     store is compacted)";

/// Rewrite a store without free pages
#[derive(Debug, Args)]
#[command(after_long_help = COMPACT_NOTES)]
pub(super) struct Compact {
    #[command(flatten)]
    store: FolderArgs,
    /// Print nothing
    #[arg(short, long)]
    quiet: bool,
}

impl Compact {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let done = compact_with(self.store.path()?, &self.store.options())?;
        if !self.quiet {
            let (before, after) = (bytes(done.before_bytes), bytes(done.after_bytes));
            print_summary(&format!(
                "{}: {before} before, {after} now\n",
                self.store.path()?.display()
            ))?;
        }
        Ok(Outcome::Success)
    }
}
