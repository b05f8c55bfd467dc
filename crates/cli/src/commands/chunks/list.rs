//! `nuthatch chunks list`.

use super::folder_args::{FolderArgs, check_readable};
use super::object_name::{escaped, escaped_name, format_age, object_name};
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print;
use clap::{Args, ValueEnum};
use nuthatch_chunks::{Clock, Description, Object, SystemClock};
use nuthatch_units::{bytes, grouped};
use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

const NOTES: &str = "\
Each line describes one version of an object: bytes in the cache, their share of the object, number
of chunks, uses (0 to 3, of the most used chunk; unused chunks are evicted first), time since a
segment with its chunks was last written, whether it is pinned, and its address or name. Versions at
one address have different validators; the validator follows the address.

Examples:
  nuthatch chunks list
  nuthatch chunks list --sort put
  nuthatch chunks list --json | jq -r 'select(.pinned) | .name'

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: there is no cache in the folder, one of its files cannot be read
     (what can be read is listed)";

/// List the objects in a cache
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct List {
    #[command(flatten)]
    folder: FolderArgs,
    /// Sort order
    #[arg(long, value_enum, value_name = "ORDER", default_value = "size")]
    sort: Order,
    /// Print a JSON object for each version
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    /// Most bytes first
    Size,
    /// Last stored first
    Put,
    /// Most used first
    Uses,
    /// By name
    Name,
}

impl List {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let chunks = self.folder.open()?;
        let (mut objects, unreadable) = chunks.list_all();
        let name = |object: &Object| object_name(&object.key);
        match self.sort {
            Order::Size => objects.sort_by_cached_key(|one| (Reverse(one.bytes), name(one))),
            Order::Put => objects.sort_by_cached_key(|one| (Reverse(one.put_ms), name(one))),
            Order::Uses => objects.sort_by_cached_key(|one| (Reverse(one.uses), name(one))),
            Order::Name => objects.sort_by_cached_key(name),
        }
        print(&if self.json { objects.iter().map(json).collect() } else { text(&objects) })?;
        check_readable(&chunks, &unreadable, "chunks in them are not listed")?;
        Ok(Outcome::Success)
    }
}

fn text(objects: &[Object]) -> String {
    if objects.is_empty() {
        return "no objects\n".to_owned();
    }
    let now = SystemClock.now_ms();
    let mut text = format!(
        "{:>10} {:>6} {:>8} {:>4} {:>8} {:>6}  {}\n",
        "cached", "share", "chunks", "uses", "put", "pinned", "name"
    );
    for object in objects {
        let put = Duration::from_millis(now.saturating_sub(object.put_ms));
        let (mut name, mut share) = (escaped_name(&object.key), "-".to_owned());
        if let Description::Blocks { validator, object_len, .. } = object.key.describe() {
            let _ = write!(name, "  {}", escaped(&validator));
            share = format!("{} %", percent(object.bytes, object_len));
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>10} {share:>6} {:>8} {:>4} {:>8} {:>6}  {name}",
            bytes(object.bytes),
            grouped(object.chunks),
            object.uses,
            if object.put_ms == 0 { "-".to_owned() } else { format_age(put) },
            if object.pinned { "yes" } else { "" },
        );
    }
    text
}

/// Returns a percentage that is 100 only if nothing is missing.
fn percent(part: u64, whole: u64) -> u64 {
    if whole == 0 { 100 } else { (u128::from(part) * 100 / u128::from(whole)) as u64 }
}

fn json(object: &Object) -> String {
    let line = JsonObject::new().text("name", &object_name(&object.key));
    let line = match object.key.describe() {
        Description::Blocks { validator, object_len, block_len, .. } => line
            .text("kind", "blocks")
            .text("validator", &validator)
            .plain("object_bytes", object_len)
            .plain("block_bytes", block_len),
        Description::Named(_) => line.text("kind", "named"),
        Description::Content(_) => line.text("kind", "content"),
        _ => line.text("kind", "unknown"),
    };
    let expires = match object.expiry {
        0 => "null".to_owned(),
        at => at.to_string(),
    };
    line.plain("cached_bytes", object.bytes)
        .plain("chunks", object.chunks)
        .plain("uses", object.uses)
        .plain("put_ms", object.put_ms)
        .plain("expires_ms", expires)
        .plain("pinned", object.pinned)
        .line()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_ages_are_rounded_down() {
        assert_eq!([percent(0, 0), percent(999, 1000), percent(7, 7)], [100, 99, 100]);
        assert_eq!(percent(u64::MAX / 2, u64::MAX), 49);
        for (seconds, text) in
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 d")]
        {
            assert_eq!(format_age(Duration::from_secs(seconds)), text);
        }
    }
}
