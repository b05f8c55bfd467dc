//! `nuthatch verify`: checks every byte of a snapshot.

use crate::outcome::{Failure, Outcome};
use crate::terminal::Display;
use crate::terminal::print_result;
use clap::Args;
use nuthatch_snapshot::Snapshot;
use nuthatch_units::{bytes, duration, grouped};
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Instant;

const NOTES: &str = "\
Examples:
  nuthatch verify users.nut
  nuthatch verify users.nut --quiet && mv users.nut /srv/snapshots/

Exit status:
  0  the file is valid
  2  invalid command line
  3  the file is missing, not a snapshot, damaged (the error reports the offset), or was truncated
     or unreadable while it was read; or the result cannot be printed (the error message contains
     it)";

/// Check every byte of a snapshot
///
/// Opening a snapshot checks only its header and its dictionary, and a lookup checks only the bytes
/// that it reads. This command checks all checksums, offsets and values, and that a lookup finds
/// every entry. It uses all cores.
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Verify {
    /// Snapshot file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print nothing unless the file is damaged
    #[arg(short, long)]
    quiet: bool,
}

impl Verify {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let snapshot = Snapshot::open(&self.file)?;
        let threads = available_parallelism().map_or(1, usize::from);
        let display = Display::new(self.quiet, None);
        let verified = snapshot.verify_with(threads, |done, total| {
            display.stage("verifying", done, total);
        });
        display.finish();
        verified?;
        if !self.quiet {
            let (file, stats) = (self.file.display(), snapshot.stats());
            let (entries, len) = (grouped(stats.entries), bytes(stats.file_len));
            let time = duration(start.elapsed());
            print_result(&format!("{file}: valid: {entries} entries, {len}, {time}\n"))?;
        }
        Ok(Outcome::Success)
    }
}
