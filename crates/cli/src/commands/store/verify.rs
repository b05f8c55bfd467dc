//! `nuthatch store verify`.

use super::store_args::FolderArgs;
use crate::outcome::{Failure, Outcome};
use crate::terminal::{Display, print_result};
use clap::Args;
use nuthatch_store::verify_closed;
use nuthatch_units::{duration, grouped};
use std::time::Instant;

const VERIFY_NOTES: &str = "\
Checks that every page is where its parent says and belongs to one tree, that keys are in order,
and that counts are right. An empty file is damaged, too. LMDB keeps no checksums, so changed bytes
within a value are not detected. A page that is neither in use nor free is lost space, not damage.
Other processes may use the store meanwhile.

Examples:
  nuthatch store verify db
  nuthatch store verify /backups/today --quiet && echo valid

Exit status:
  0  the store is valid
  2  invalid command line
  3  the store is missing or damaged (the error names the place), or the result cannot be printed on
     standard output (the error message contains it)";

/// Check every page of a store
#[derive(Debug, Args)]
#[command(after_long_help = VERIFY_NOTES)]
pub(super) struct Verify {
    #[command(flatten)]
    store: FolderArgs,
    /// Print nothing unless the store is damaged
    #[arg(short, long)]
    quiet: bool,
}

impl Verify {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let display = Display::new(self.quiet, None);
        let progress = |done, total| display.stage("verifying", done, total);
        // A file that cannot be opened as a store can still be verified.
        let verified = match self.store.open_read_only() {
            Ok(store) => store.verify(progress),
            Err(failure) if !self.store.path()?.exists() => return Err(failure),
            Err(_) => verify_closed(self.store.path()?, progress),
        };
        display.finish();
        let verified = verified?;
        if !self.quiet {
            let path = self.store.path()?.display();
            let (entries, pages) = (grouped(verified.entries), grouped(verified.pages));
            let (free, tables) = (grouped(verified.free_pages), verified.tables);
            let time = duration(start.elapsed());
            print_result(&format!(
                "{path}: valid: {entries} entries in {tables} tables, {pages} pages of which \
                 {free} are free, {time}\n"
            ))?;
        }
        Ok(Outcome::Success)
    }
}
