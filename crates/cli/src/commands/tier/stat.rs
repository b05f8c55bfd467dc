//! `nuthatch tier stat`.

use super::FolderArg;
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::terminal::{print, print_message};
use clap::Args;
use nuthatch_tier::{Clock, FolderState, Stat as TierStat, SystemClock};
use nuthatch_units::{bytes, duration, grouped};
use std::path::Path;
use std::time::Duration;

const NOTES: &str = "\
Examples:
  nuthatch tier stat /var/lib/nuthatch/items
  nuthatch tier stat /var/lib/nuthatch/items --json | jq .records

Records include those of items that were deleted or overwritten later: with --disk, the removal log
names them, and the server does not recover them. Live: records whose items have not expired. Expiry
is rounded up to seconds. Removals: the entries of the removal log, also those for records of item
files that were removed since. Ages: the time since the oldest and the newest item file were
created.

State in which the last server left the folder:
  closed      it closed its dump or its disk tier when it stopped
  not closed  it did not: it was killed, crashed, got a second signal, or its disk failed
  lost power  the system stopped while the server used the folder
  outdated    it had no --disk, and ended while it restored items from the folder

`serve --warm-restart` restores items only from a folder that is closed. `serve --disk` recovers
items from one that is closed or not closed. Otherwise the next server removes all records.

Reads headers, directories and the removal log, and the item files that are not sealed. Errors on
standard error name what is damaged; `nuthatch tier verify` checks every byte.

Exit status:
  0  success, also if files are damaged
  2  invalid command line
  3  any other error, for example: a server uses the folder, or it is not a folder of items";

/// Show what a folder of items contains
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Stat {
    #[command(flatten)]
    folder: FolderArg,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Stat {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let (folder, now_ms) = (&self.folder.folder, SystemClock.now_ms());
        let stat = nuthatch_tier::stat(folder, now_ms)?;
        for damage in &stat.damage {
            print_message(format_args!("{}/{damage}", folder.display()));
        }
        print(&if self.json { json(folder, &stat, now_ms) } else { text(folder, &stat, now_ms) })?;
        Ok(Outcome::Success)
    }
}

fn state(stat: &TierStat) -> &'static str {
    match stat.state {
        FolderState::New | FolderState::NotClosed => "not closed",
        FolderState::Closed => "closed",
        FolderState::LostPower => "lost power",
        FolderState::Outdated => "outdated",
    }
}

fn text(folder: &Path, stat: &TierStat, now_ms: u64) -> String {
    let age = |created_ms: u64| duration(Duration::from_millis(now_ms.saturating_sub(created_ms)));
    let ages = match (stat.oldest_ms, stat.newest_ms) {
        (Some(oldest_ms), Some(newest_ms)) => {
            format!("{} the oldest file, {} the newest", age(oldest_ms), age(newest_ms))
        }
        _ => "no files".to_owned(),
    };
    format!(
        "folder    {}\n\
         state     {}\n\
         in use    {}\n\
         files     {}, of which {} not sealed\n\
         records   {}, {}\n\
         live      {}\n\
         expired   {}\n\
         removals  {} entries, {} in {} files of the removal log\n\
         ages      {ages}\n\
         damaged   {}\n",
        folder.display(),
        state(stat),
        bytes(stat.bytes),
        grouped(stat.files),
        grouped(stat.files - stat.sealed_files),
        grouped(stat.records),
        bytes(stat.record_bytes),
        grouped(stat.records - stat.expired),
        grouped(stat.expired),
        grouped(stat.removal_entries),
        bytes(stat.removal_log_bytes),
        grouped(stat.removal_logs),
        grouped(stat.damage.len() as u64),
    )
}

fn json(folder: &Path, stat: &TierStat, now_ms: u64) -> String {
    let age = |created_ms: Option<u64>| {
        created_ms.map_or("null".to_owned(), |ms| now_ms.saturating_sub(ms).to_string())
    };
    JsonObject::new()
        .text("folder", &folder.display().to_string())
        .text("state", state(stat))
        .plain("used_bytes", stat.bytes)
        .plain("files", stat.files)
        .plain("files_sealed", stat.sealed_files)
        .plain("records", stat.records)
        .plain("record_bytes", stat.record_bytes)
        .plain("records_live", stat.records - stat.expired)
        .plain("records_expired", stat.expired)
        .plain("removal_entries", stat.removal_entries)
        .plain("removal_log_bytes", stat.removal_log_bytes)
        .plain("removal_log_files", stat.removal_logs)
        .plain("oldest_age_ms", age(stat.oldest_ms))
        .plain("newest_age_ms", age(stat.newest_ms))
        .plain("damaged", stat.damage.len())
        .line()
}
