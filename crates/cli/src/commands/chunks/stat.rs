//! `nuthatch chunks stat`.

use super::folder_args::{FolderArgs, check_readable, print_warnings};
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print;
use clap::Args;
use nuthatch_chunks::Stat as ChunksStat;
use nuthatch_units::{bytes, grouped};
use std::path::Path;

const NOTES: &str = "\
Examples:
  nuthatch chunks stat
  nuthatch chunks stat --json | jq .used_bytes

In use: bytes of all files in the folder, and bytes that processes have reserved for further chunks.
The limit is the last one that any process set, for example with get --limit.

Chunks: approximate number in the cache, including one or two with metadata for each object, and how
many the index has room for. The index grows when it is full. Displaced: chunks that the index
dropped because it was full and could not grow; they are fetched again. It should be 0; a higher
limit lets the index grow further. A segment that is not sealed is being written, or its writer has
ended. Evicted: segments that eviction removed since the index was created, and bytes of used
chunks, which it moved to another segment instead.

Warnings on standard error: this user can only read the folder, so nothing is stored; other users
can access it (new folders have mode 0700, or 2770 with --share-with-group); it is on a network
filesystem, where two machines must not use it at the same time.

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: there is no cache in the folder, one of its files cannot be read
     (the statistics are printed)";

/// Show how full a cache is
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Stat {
    #[command(flatten)]
    folder: FolderArgs,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Stat {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let chunks = self.folder.open()?;
        let (stat, unreadable) = (chunks.stat(), chunks.unreadable());
        print_warnings(&chunks);
        let count = unreadable.len();
        print(&if self.json {
            json(chunks.path(), &stat, count)
        } else {
            text(chunks.path(), &stat, count)
        })?;
        check_readable(&chunks, &unreadable, "chunks in them are counted, and cannot be used")?;
        Ok(Outcome::Success)
    }
}

fn text(folder: &Path, stat: &ChunksStat, unreadable: usize) -> String {
    let unreadable = match unreadable {
        0 => String::new(),
        count => format!("; {count} cannot be read"),
    };
    let free = match stat.min_free {
        0 => String::new(),
        least => format!("; {} of the disk are kept free", bytes(least)),
    };
    format!(
        "folder    {}\n\
         limit     {}{free}\n\
         in use    {}, {:.1} %\n\
         chunks    {} of at most {}\n\
         displaced {}\n\
         segments  {}, of which {} not sealed{unreadable}\n\
         evicted   {} segments; {} of used chunks were moved instead of evicted\n",
        folder.display(),
        bytes(stat.limit),
        bytes(stat.used),
        stat.used as f64 * 100.0 / stat.limit.max(1) as f64,
        grouped(stat.parts),
        grouped(stat.max_parts),
        grouped(stat.displaced),
        grouped(stat.segments),
        grouped(stat.writing),
        grouped(stat.evicted),
        bytes(stat.moved_bytes),
    )
}

fn json(folder: &Path, stat: &ChunksStat, unreadable: usize) -> String {
    JsonObject::new()
        .text("folder", &folder.display().to_string())
        .plain("limit_bytes", stat.limit)
        .plain("min_free_bytes", stat.min_free)
        .plain("used_bytes", stat.used)
        .plain("segment_bytes", stat.segment_bytes)
        .plain("chunks", stat.parts)
        .plain("max_chunks", stat.max_parts)
        .plain("chunks_displaced", stat.displaced)
        .plain("read_only", stat.read_only)
        .plain("segments", stat.segments)
        .plain("segments_writing", stat.writing)
        .plain("segments_unreadable", unreadable)
        .plain("segments_evicted", stat.evicted)
        .plain("moved_bytes", stat.moved_bytes)
        .line()
}
