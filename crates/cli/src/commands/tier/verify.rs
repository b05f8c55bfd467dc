//! `nuthatch tier verify`.

use super::FolderArg;
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::terminal::{Display, print_message, print_result};
use clap::Args;
use nuthatch_tier::{Damage, Verified};
use nuthatch_units::{bytes, duration, grouped};
use std::time::Instant;

const NOTES: &str = "\
Reads every byte of the item files and of the removal log, and compares all checksums, and
directories with records. Changes nothing: a server that uses the folder later skips what is
damaged. If the removal log of `serve --disk` is damaged, the server also skips all records that the
damaged part may have named.

Examples:
  nuthatch tier verify /var/lib/nuthatch/items
  nuthatch tier verify /var/lib/nuthatch/items --json | jq .damaged

A server that died may leave an incomplete batch at the end of the newest item file. It is
reported, and is not damage.

Exit status:
  0  nothing is damaged, and all files were read
  1  something is damaged, and all files were read; errors name file and offset
  2  invalid command line
  3  any other error, for example: a server uses the folder, it is not a folder of items, a file
     cannot be read (even if others are damaged), the result cannot be printed";

/// Check every byte of a folder of items
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Verify {
    #[command(flatten)]
    folder: FolderArg,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Print only what is damaged
    #[arg(short, long)]
    quiet: bool,
}

impl Verify {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let (start, folder) = (Instant::now(), &self.folder.folder);
        let display = Display::new(self.quiet, None);
        let verified = nuthatch_tier::verify(folder, |done, total| {
            display.transferred("verifying", "", done, total);
        });
        display.finish();
        let verified = verified?;
        for damage in verified.damage.iter().chain(&verified.unreadable) {
            print_message(format_args!("{}/{damage}", folder.display()));
        }
        if self.json {
            print_result(&json(&verified))?;
        } else if !self.quiet {
            let (words, time) = (in_words(&verified), duration(start.elapsed()));
            print_result(&format!("{}: {words}, {time}\n", folder.display()))?;
        }
        match (verified.unreadable.len(), verified.damage.len()) {
            (0, 0) => Ok(Outcome::Success),
            (0, _) => Ok(Outcome::Damaged),
            (unread, _) => {
                let problem = format!("{unread} places could not be read");
                Err(Failure::Error(format!("{}: {problem}", folder.display())))
            }
        }
    }
}

fn in_words(verified: &Verified) -> String {
    let files = format!("{} files, {}", grouped(verified.files), bytes(verified.bytes));
    let valid = format!("{} records in {files}", grouped(verified.records));
    let valid = match &verified.incomplete_batch {
        Some(batch) => format!("{valid}; incomplete batch at the end of {}", batch.file),
        None => valid,
    };
    match verified.damage.len() {
        0 => format!("valid: {valid}"),
        1 => format!("1 damaged place; valid: {valid}"),
        count => format!("{count} damaged places; valid: {valid}"),
    }
}

fn json(verified: &Verified) -> String {
    let list = |damages: &[Damage]| {
        let objects = damages.iter().map(|damage| {
            JsonObject::new()
                .text("file", &damage.file)
                .plain("offset", damage.offset)
                .text("reason", &damage.reason)
                .end()
        });
        format!("[{}]", objects.collect::<Vec<_>>().join(","))
    };
    JsonObject::new()
        .plain("files", verified.files)
        .plain("bytes", verified.bytes)
        .plain("valid_records", verified.records)
        .plain("incomplete_batch", verified.incomplete_batch.is_some())
        .plain("damaged", list(&verified.damage))
        .plain("unreadable", list(&verified.unreadable))
        .line()
}
