//! `nuthatch verify`: checks every byte of snapshots.

use crate::outcome::{Failure, Outcome};
use crate::terminal::Display;
use crate::terminal::{print_failure, print_result};
use clap::Args;
use nuthatch_cli::output::json_string;
use nuthatch_snapshot::{Error, Snapshot, Stats};
use nuthatch_units::{bytes, duration, grouped};
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

const NOTES: &str = "\
All files are checked, even if one is not valid. Of each file the first error is reported.

--json prints an object on a line for each file:
  {\"file\":\"a.nut\",\"ok\":true,\"entries\":5,\"file_bytes\":1344,\"seconds\":0.001}
  {\"file\":\"b.nut\",\"ok\":false,\"error\":{\"code\":\"corrupt\",\"file\":\"b.nut\",\"offset\":16,
   \"expected\":\"...\",\"found\":\"...\",\"message\":\"...\"}}   (on one line)
The file of an error is the one that is damaged, such as a shard of a set. For an error without an
offset, for example a missing file, offset, expected and found are null. The codes are
not-a-snapshot, unsupported, corrupt, unreadable and io.

Examples:
  nuthatch verify users.nut
  nuthatch verify users.nut --quiet && mv users.nut /srv/snapshots/
  nuthatch verify /srv/snapshots/*.nut --json | jq -r 'select(.ok | not) | .file'

Exit status:
  0  all files are valid
  2  invalid command line
  3  a file is missing, not a snapshot, damaged (the error reports the offset), or was truncated
     or unreadable while it was read; or the result cannot be written to standard output (the error
     message then contains the result)";

/// Check every byte of snapshots
///
/// Opening a snapshot checks only its header and its dictionary, and a lookup checks only the bytes
/// that it reads. This command checks all checksums, offsets and values, and that a lookup finds
/// every entry. It uses all cores.
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Verify {
    /// Snapshot files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    /// Print a JSON object for each file, also for one that is not valid
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
}

impl Verify {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let (mut outcome, mut is_output_closed) = (Outcome::Success, false);
        for file in &self.files {
            let start = Instant::now();
            let verified = self.verify(file);
            if verified.is_err() {
                outcome = Outcome::Failed;
            }
            let line = match &verified {
                _ if self.json => Some(json(file, &verified, start.elapsed())),
                Ok(_) if self.quiet => None,
                Ok(stats) => Some(text(file, stats, start.elapsed())),
                Err(error) => {
                    print_failure(&error.to_string());
                    None
                }
            };
            // The exit status is for all files, even if the reader of the output has seen enough.
            let Some(line) = line.filter(|_| !is_output_closed) else { continue };
            match print_result(&line) {
                Err(Failure::ClosedPipe) => is_output_closed = true,
                printed => printed?,
            }
        }
        Ok(outcome)
    }

    fn verify(&self, file: &Path) -> Result<Stats, Error> {
        let snapshot = Snapshot::open(file)?;
        let threads = available_parallelism().map_or(1, usize::from);
        let display = Display::new(self.quiet, None);
        let verified = snapshot.verify_with(threads, |done, total| {
            display.stage("verifying", done, total);
        });
        display.finish();
        verified?;
        Ok(snapshot.stats())
    }
}

fn text(file: &Path, stats: &Stats, time: Duration) -> String {
    let (entries, len, time) = (grouped(stats.entries), bytes(stats.file_len), duration(time));
    format!("{}: valid: {entries} entries, {len}, {time}\n", file.display())
}

fn json(file: &Path, verified: &Result<Stats, Error>, time: Duration) -> String {
    let name = quoted(&file.to_string_lossy());
    match verified {
        Ok(stats) => format!(
            "{{\"file\":{name},\"ok\":true,\"entries\":{},\"file_bytes\":{},\"seconds\":{:.3}}}\n",
            stats.entries,
            stats.file_len,
            time.as_secs_f64()
        ),
        Err(error) => {
            format!("{{\"file\":{name},\"ok\":false,\"error\":{}}}\n", json_error(file, error))
        }
    }
}

/// Returns an error as a JSON object.
fn json_error(file: &Path, error: &Error) -> String {
    let (at, damage) = match error {
        Error::NotASnapshot(damage) | Error::Unsupported(damage) | Error::Corrupt(damage) => {
            (&damage.path, Some(damage))
        }
        Error::Io(failed) | Error::NotDurable(failed) => (&failed.path, None),
        Error::Unreadable(path) => (&**path, None),
        _ => (&file.to_owned(), None),
    };
    let null = || "null".to_owned();
    let offset = damage.map_or_else(null, |damage| damage.offset.to_string());
    let expected = damage.map_or_else(null, |damage| quoted(&damage.expected));
    let found = damage.map_or_else(null, |damage| quoted(&damage.found));
    format!(
        "{{\"code\":{},\"file\":{},\"offset\":{offset},\"expected\":{expected},\"found\":{found},\
         \"message\":{}}}",
        quoted(error.code()),
        quoted(&at.to_string_lossy()),
        quoted(&error.to_string())
    )
}

fn quoted(text: &str) -> String {
    let mut json = Vec::new();
    json_string(text, &mut json);
    String::from_utf8_lossy(&json).into_owned()
}
