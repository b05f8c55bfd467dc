//! `nuthatch chunks get`: reads an object, or a part of it, through the cache.

use super::byte_range::ByteRange;
use super::folder_args::{FolderArgs, print_warnings};
use super::freshness_args::FreshnessArgs;
use super::header_args::HeaderArgs;
use super::limit_args::LimitArgs;
use super::object_name::format_age;
use super::output::{Output, is_stdout};
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::process::raise_file_limit;
use crate::terminal::Display;
use crate::terminal::{print_message, print_summary};
use clap::Args;
use nuthatch_chunks::{Clock, SystemClock};
use nuthatch_origins::{
    ChunkedObject, Counts, Error, NotKept, ObjectCache, Settings, plain_address,
};
use nuthatch_units::{bytes, duration, grouped};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fmt::Write as _;
use std::io::{Write as _, stderr};
use std::ops::Range;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const NOTES: &str = "\
URL is http:// or https://, s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/PATH, file:// or a
path. Credentials for an object store come from where the tools of its provider keep them:
environment variables, profiles, the identity of the machine. For http and https they come from URL,
--header or .netrc ($NETRC, or in your home folder); .netrc is used for https and for this machine
only. Credentials are never printed and never written to the cache.

Each get requests the current version of the object from the origin. Bytes of that version that are
in the cache are not fetched. The rest is fetched in blocks of 1 MiB, or of an eighth of the limit
of the folder if that is less, and stored in the cache. So more bytes may be fetched than the range
has; the summary shows both numbers. If the origin names no version (no strong ETag, and no
Last-Modified at least 2 s old), nothing is stored in the cache. The summary counts the blocks that
were not stored, by cause: no-version, no-length (the origin reports none), address (too long),
conflict (the cache has other bytes of this version), no-room (pinned chunks fill the limit), disk
(full, or a write failed), busy (another process has the lock of the folder), files (too many open
files), folder (it cannot be used) and read-only. With --json they are in not_kept_by_cause.

If the origin cannot be reached, or responds with 429, 500, 502, 503 or 504, --max-stale reads the
version that the origin last confirmed, with a warning, after one attempt of at most a second. With
--offline, the origin is never contacted. Bytes of that version that are not in the cache are an
error, unless the origin is available again and still has the version.

Warnings are lines on standard error and do not change the exit status. A cache folder that cannot
be opened is not used: all bytes come from the origin. A folder without write permission is used,
but nothing is stored in it, and --limit must be the limit that it has. Other warnings: other users
can access the folder (new folders have mode 0700, or 2770 with --share-with-group), or it is on a
network filesystem.

RANGE is A-B for the bytes from A up to, but not including, B; A- for all from A on; -N for the last
N bytes. Each number can be a size such as 64KiB.

Without -o the bytes are written to standard output; binary data is not written to a terminal. The
file of -o is published when it is complete. The command removes incomplete copies that killed
commands left. With --json, a summary is printed on standard output, or on standard error if the
bytes are written to standard output.

Examples:
  nuthatch chunks get https://host/model.bin -o model.bin
  nuthatch chunks get s3://bucket/table.parquet --range -8 | xxd
  nuthatch chunks get https://host/data.csv --limit 20GiB | head
  nuthatch chunks get https://host/private.bin --header @token -o private.bin
  nuthatch chunks get https://host/model.bin --max-stale 1d -o model.bin

Exit status:
  0  all bytes were written
  1  the object does not exist
  2  invalid command line, or --limit or --share-with-group cannot be applied to the folder
  3  any other error, for example: the origin cannot be reached or denies access, the object
     changed, an interrupt, bytes are not in the cache (--offline)";

/// Read a remote object, or a part of it, through the cache
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Get {
    /// The address of the object
    #[arg(value_name = "URL")]
    address: String,
    /// Bytes to read: A-B (without B), A- or -N
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true, value_parser = ByteRange::parse)]
    range: Option<ByteRange>,
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    freshness: FreshnessArgs,
    #[command(flatten)]
    headers: HeaderArgs,
    /// Maximum retries after a transient failure
    #[arg(long, value_name = "N", default_value_t = 5)]
    retries: u32,
    /// File to write the bytes to; - is standard output, even if it is a terminal
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
    /// Print neither progress nor a summary
    #[arg(short, long)]
    quiet: bool,
}

impl Get {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        raise_file_limit();
        let access = self.headers.access()?;
        let settings = self.freshness.apply(Settings::new().retries(self.retries));
        let (options, offline) = (self.limit.options(), self.freshness.is_offline());
        let cache = self.folder.open_or_create(self.limit, &options, settings, offline)?;
        if let Some(chunks) = cache.chunks() {
            print_warnings(&chunks);
        }
        if let Some(problem) = cache.folder_problem() {
            self.limit.check_applied(&problem)?;
            print_message(format_args!("warning: {problem}; reads pass through to the origin"));
        }
        // Threads of the cache do the work; this thread waits for them and writes.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Error(error.to_string()))?;
        let object = match runtime.block_on(cache.object_as(&self.address, &access)) {
            Ok(object) => object,
            Err(error @ Error::NotFound { .. }) => {
                print_message(error);
                return Ok(Outcome::NotFound);
            }
            Err(error) => return Err(self.not_opened(&cache, &error)),
        };
        if let Some(age) = object.stale_age() {
            let age = format_age(age);
            let problem = "the origin did not confirm this version; it last did so";
            print_message(format_args!("warning: {problem} {age} ago"));
        }
        let range = self.range.map_or(Ok(0..object.len()), |part| part.resolve(object.len()));
        let range = range.map_err(|problem| Failure::Error(format!("--range: {problem}")))?;
        // Without a file to remove, an interrupt may end the process at once.
        let to_stdout = self.output.as_deref().is_none_or(is_stdout);
        let interrupted = if to_stdout { None } else { Some(interrupted()?) };
        let copying = self.copy(&object, range, Output::open(self.output.as_deref())?);
        runtime.block_on(async {
            tokio::select! {
                copied = copying => copied,
                () = ended(interrupted) => Err(Failure::Error("interrupted".to_owned())),
            }
        })?;
        // Metadata, and the pin that moves with it, may not be in the folder yet.
        cache.wait_for_puts();
        self.sum_up(&object, start.elapsed(), to_stdout)
    }

    /// Returns the failure of an object that cannot be opened, with advice if the cache has it.
    fn not_opened(&self, cache: &ObjectCache, error: &Error) -> Failure {
        let away = matches!(error, Error::Unreachable { .. } | Error::Status { .. });
        let address = plain_address(&self.address).ok();
        let found = cache.chunks().zip(address).filter(|_| away);
        let Some(known) = found.and_then(|(chunks, address)| chunks.metadata(&address)) else {
            return Failure::Error(error.to_string());
        };
        let age = format_age(Duration::from_millis(
            SystemClock.now_ms().saturating_sub(known.checked_ms),
        ));
        let advice = "--offline or --max-stale TIME reads what the cache has of it";
        Failure::Error(format!("{error}; a version was confirmed {age} ago: {advice}"))
    }

    async fn copy(
        &self,
        object: &ChunkedObject,
        range: Range<u64>,
        mut output: Output,
    ) -> Result<(), Failure> {
        let display = Display::new(self.quiet || output.is_terminal(), None);
        let (mut done, total) = (0, range.end - range.start);
        if total > 0 {
            let mut stream = object.stream(range)?;
            while let Some(piece) = stream.next().await {
                let piece = piece?;
                output.write(&piece)?;
                done += piece.len() as u64;
                display.transferred("reading", &hit_note(&object.counts()), done, total);
            }
        }
        display.finish();
        output.finish()
    }

    fn sum_up(
        &self,
        object: &ChunkedObject,
        time: Duration,
        to_stdout: bool,
    ) -> Result<Outcome, Failure> {
        let counts = object.counts();
        if self.json {
            let line = summary(object, &counts, time);
            if to_stdout {
                // A summary that cannot be written is dropped.
                let _ = stderr().lock().write_all(line.as_bytes());
            } else {
                print_summary(&line)?;
            }
        } else if !self.quiet {
            print_message(in_words(object, &counts, time));
        }
        Ok(Outcome::Success)
    }
}

/// Returns a receiver of signals that end the command.
fn interrupted() -> Result<oneshot::Receiver<()>, Failure> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = signals.map_err(|error| Failure::Error(error.to_string()))?;
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // If there is no receiver any more, the command is ending.
            let _ = sender.send(());
        }
    });
    Ok(receiver)
}

/// Ends when a signal arrived; never, without a receiver.
async fn ended(interrupted: Option<oneshot::Receiver<()>>) {
    match interrupted {
        Some(interrupted) => drop(interrupted.await),
        None => std::future::pending().await,
    }
}

fn hit_note(counts: &Counts) -> String {
    let share = counts.hit_share().unwrap_or(0.0) * 100.0;
    format!(", {:.0} % from the cache", share.floor())
}

/// Returns the causes for which blocks were not kept, with the number of blocks.
fn causes(counts: &Counts) -> Vec<(NotKept, u64)> {
    let all = NotKept::ALL.map(|cause| (cause, counts.not_kept_by(cause)));
    all.into_iter().filter(|(_, blocks)| *blocks > 0).collect()
}

fn summary(object: &ChunkedObject, counts: &Counts, time: Duration) -> String {
    let share = counts.hit_share().map_or("null".to_owned(), |share| format!("{share:.4}"));
    let causes = causes(counts).into_iter();
    let not_kept =
        causes.fold(JsonObject::new(), |json, (cause, blocks)| json.plain(cause.code(), blocks));
    JsonObject::new()
        .text("address", object.address())
        .plain("object_bytes", object.len())
        .plain("bytes", counts.read())
        .plain("from_cache_bytes", counts.from_cache)
        .plain("from_origin_bytes", counts.from_origin)
        .plain("coalesced_bytes", counts.coalesced)
        .plain("fetched_bytes", counts.fetched)
        .plain("hit_share", share)
        .plain("requests", counts.requests)
        .plain("checks", counts.checks)
        .plain("retries", counts.retries)
        .plain("fetch_lock_timeouts", counts.fetch_lock_timeouts)
        .plain("not_kept", counts.not_kept)
        .plain("not_kept_by_cause", not_kept.end())
        .plain("stale", object.is_stale())
        .plain("seconds", format_args!("{:.6}", time.as_secs_f64()))
        .line()
}

fn in_words(object: &ChunkedObject, counts: &Counts, time: Duration) -> String {
    let mut text = format!(
        "{}: {}, {} from the cache, {} from the origin in {} requests",
        object.address(),
        bytes(counts.read()),
        bytes(counts.from_cache + counts.coalesced),
        bytes(counts.from_origin),
        grouped(counts.requests),
    );
    // Writing to a string cannot fail.
    if counts.fetched > counts.from_origin {
        let _ = write!(text, " that received {}", bytes(counts.fetched));
    }
    if counts.fetch_lock_timeouts > 0 {
        text.push_str(
            ", waited too long for blocks that another process was fetching (is it stopped?)",
        );
    }
    for (cause, blocks) in causes(counts) {
        let _ = write!(text, ", {} blocks not kept ({cause})", grouped(blocks));
    }
    let _ = write!(text, ", {}", duration(time));
    text
}
