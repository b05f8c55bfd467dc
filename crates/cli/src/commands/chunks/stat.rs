//! `nuthatch chunks stat`.

use super::json::Json;
use super::place::{Place, check_readable, tell_warnings};
use super::told::say;
use crate::commands::{Answer, Failure};
use crate::figures::{bytes, grouped};
use clap::Args;
use nuthatch_chunks::Stat as ChunksStat;
use std::path::Path;

const NOTES: &str = "\
Examples:
  nuthatch chunks stat
  nuthatch chunks stat --json | jq .used_bytes

In use: bytes of all files in the folder, and bytes that processes have reserved for further puts.
The limit is the last one that any process set, for example with get --limit.

Chunks: about how many are in the cache, and how many the index has room for. The index grows when
it is full. Displaced: chunks that were lost because the index was full and could not grow; it
should be 0. A higher limit lets the index grow further.

Warnings on standard error: this user can only read the folder, so nothing is put; other users may
use it (it is made with mode 0700, or 2770 with --share-with-group); it lies on a network
filesystem, where two machines must not use it at the same time.

Exit status:
  0  all went well
  2  the command line is wrong
  3  anything else: there is no cache in the folder, one of its files cannot be read (the figures
     are printed all the same)";

/// Show how full a cache is
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Stat {
    #[command(flatten)]
    place: Place,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Stat {
    pub(super) fn run(&self) -> Result<Answer, Failure> {
        let chunks = self.place.open()?;
        let (stat, unreadable) = (chunks.stat(), chunks.unreadable());
        tell_warnings(&chunks);
        let count = unreadable.len();
        say(&if self.json {
            json(chunks.path(), &stat, count)
        } else {
            text(chunks.path(), &stat, count)
        })?;
        check_readable(&chunks, &unreadable, "chunks in them are counted, and cannot be used")?;
        Ok(Answer::Whole)
    }
}

fn text(folder: &Path, stat: &ChunksStat, unreadable: usize) -> String {
    let unreadable = match unreadable {
        0 => String::new(),
        count => format!("; {count} cannot be read"),
    };
    let free = match stat.least_free {
        0 => String::new(),
        least => format!("; {} of the disk stay free", bytes(least)),
    };
    format!(
        "folder    {}\n\
         limit     {}{free}\n\
         in use    {}, {:.1} %\n\
         chunks    {} of at most {}\n\
         displaced {}\n\
         segments  {}, of which {} are being written{unreadable}\n\
         evicted   {} segments; {} were saved, since they are used\n",
        folder.display(),
        bytes(stat.limit),
        bytes(stat.used),
        stat.used as f64 * 100.0 / stat.limit.max(1) as f64,
        grouped(stat.parts),
        grouped(stat.parts_most),
        grouped(stat.displaced),
        grouped(stat.segments),
        grouped(stat.writing),
        grouped(stat.evicted),
        bytes(stat.moved_bytes),
    )
}

fn json(folder: &Path, stat: &ChunksStat, unreadable: usize) -> String {
    Json::new()
        .text("folder", &folder.display().to_string())
        .plain("limit_bytes", stat.limit)
        .plain("least_free_bytes", stat.least_free)
        .plain("used_bytes", stat.used)
        .plain("segment_bytes", stat.segment_bytes)
        .plain("chunks", stat.parts)
        .plain("chunks_most", stat.parts_most)
        .plain("chunks_displaced", stat.displaced)
        .plain("read_only", stat.read_only)
        .plain("segments", stat.segments)
        .plain("segments_writing", stat.writing)
        .plain("segments_unreadable", unreadable)
        .plain("segments_evicted", stat.evicted)
        .plain("saved_bytes", stat.moved_bytes)
        .line()
}
