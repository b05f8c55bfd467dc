//! `nuthatch verify`: checks every byte of a snapshot.

use super::{Answer, Failure};
use crate::figures::{bytes, grouped, seconds};
use crate::progress::Display;
use crate::streams::Stdout;
use clap::Args;
use nuthatch_snapshot::Snapshot;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Instant;

const NOTES: &str = "\
Examples:
  nuthatch verify users.nut
  nuthatch verify users.nut --quiet && mv users.nut /srv/snapshots/

Exit status:
  0  the file is whole
  2  the command line is wrong
  3  the file is missing, damaged, or no snapshot, and the error names the place; or it was
     truncated, or could not be read, meanwhile";

/// Check every byte of a snapshot
///
/// Opening a snapshot checks its header alone, and a lookup what it touches. This checks all
/// checksums, every offset and every value, and that each entry is found by its key, on all cores.
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Verify {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print nothing unless the file is damaged
    #[arg(short, long)]
    quiet: bool,
}

impl Verify {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
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
            let time = seconds(start.elapsed());
            let mut stdout = Stdout::new();
            stdout.put(format!("{file}: whole: {entries} entries, {len}, {time}\n").as_bytes())?;
            stdout.flush()?;
        }
        Ok(Answer::Whole)
    }
}
