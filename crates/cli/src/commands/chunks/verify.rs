//! `nuthatch chunks verify`.

use super::folder_args::FolderArgs;
use super::object_name::{escaped_name, object_name};
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::terminal::Display;
use crate::terminal::{print_message, print_result};
use clap::Args;
use nuthatch_chunks::{Verified, VerifyEvent};
use nuthatch_units::{bytes, duration, grouped};
use std::path::Path;
use std::time::Instant;

const NOTES: &str = "\
Reads every chunk and compares it with its checksum. Damaged chunks are removed, and fetched again
at the next read. In a folder that this process can only read, they stay and are reported each time.
Each process compares a chunk with its checksum only when it first reads it. So a long-running
process, such as a server, may return bytes that were damaged later, until verify removes them.
Other processes may use the cache meanwhile.

Examples:
  nuthatch chunks verify
  nuthatch chunks verify --json | jq .damaged

Exit status:
  0  no chunk is damaged, and all files were read
  1  chunks are damaged, and all files were read; errors name the chunks
  2  invalid command line
  3  any other error, for example: there is no cache in the folder, one of its files cannot be
     read (even if chunks are damaged, too), the result cannot be printed (the error message
     contains it)";

/// Check every byte of a cache
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Verify {
    #[command(flatten)]
    folder: FolderArgs,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Print only damaged chunks
    #[arg(short, long)]
    quiet: bool,
}

impl Verify {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let chunks = self.folder.open()?;
        let display = Display::new(self.quiet, None);
        let folder = chunks.path().to_owned();
        let mut listed = Vec::new();
        let verified = chunks.verify_with(|looked| match looked {
            VerifyEvent::Bytes { done, total } => display.transferred("verifying", "", done, total),
            found => {
                display.suspend(|| print_message(message(&folder, &found)));
                listed.extend(json(&found));
            }
        });
        display.finish();
        if self.json {
            print_result(&summary(&verified, &listed.join(",")))?;
        } else if !self.quiet {
            let time = duration(start.elapsed());
            let words = in_words(&verified, chunks.is_read_only());
            print_result(&format!("{}: {words}, {time}\n", folder.display()))?;
        }
        match (verified.unreadable, verified.damaged) {
            (0, 0) => Ok(Outcome::Success),
            (0, _) => Ok(Outcome::Damaged),
            (unread, _) => {
                Err(Failure::Error(format!("{unread} segments could not be read completely")))
            }
        }
    }
}

fn message(folder: &Path, damaged: &VerifyEvent) -> String {
    let at = |file: &str| folder.join(file).display().to_string();
    match damaged {
        VerifyEvent::Damaged { key, chunk, file } => {
            format!("{}: chunk {chunk} of {} is damaged", at(file), escaped_name(key))
        }
        VerifyEvent::Lost { chunks, file } => {
            format!("{}: {} damaged chunks of unknown objects", at(file), grouped(*chunks))
        }
        VerifyEvent::Unreadable { file, reason } => format!("{}: {reason}", at(file)),
        _ => String::new(),
    }
}

fn json(damaged: &VerifyEvent) -> Option<String> {
    Some(match damaged {
        VerifyEvent::Damaged { key, chunk, file } => JsonObject::new()
            .text("name", &object_name(key))
            .plain("chunk", chunk)
            .text("file", file)
            .end(),
        VerifyEvent::Lost { chunks, file } => {
            JsonObject::new().plain("chunks", chunks).text("file", file).end()
        }
        _ => return None,
    })
}

fn summary(verified: &Verified, damaged: &str) -> String {
    JsonObject::new()
        .plain("valid_chunks", verified.good)
        .plain("valid_bytes", verified.good_bytes)
        .plain("damaged_chunks", verified.damaged)
        .plain("torn_segments", verified.torn)
        .plain("unreadable_segments", verified.unreadable)
        .plain("damaged", format_args!("[{damaged}]"))
        .line()
}

fn in_words(verified: &Verified, is_read_only: bool) -> String {
    let valid = format!("{} chunks, {}", grouped(verified.good), bytes(verified.good_bytes));
    match (verified.damaged, verified.torn) {
        (0, 0) => format!("valid: {valid}"),
        (0, torn) => format!("valid: {valid}; {torn} segments with incomplete or damaged records"),
        (damaged, _) => {
            let outcome = if is_read_only {
                ", not removed because this process can only read the folder"
            } else {
                " removed"
            };
            format!("{} damaged chunks{outcome}; valid: {valid}", grouped(damaged))
        }
    }
}
