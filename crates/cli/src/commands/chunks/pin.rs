//! `nuthatch chunks pin`, `unpin` and `remove`.

use super::folder_args::{FolderArgs, check_readable};
use super::object_name::{escaped, object_name};
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::terminal::{print_message, print_summary};
use clap::Args;
use nuthatch_chunks::{Chunks, Object};
use nuthatch_origins::plain_address;
use nuthatch_units::grouped;
use std::collections::BTreeSet;

const PIN_NOTES: &str = "\
Chunks of a pinned object are not evicted, including those that are stored later. A pin belongs to
the address: when the origin has a new version, the pin moves to it, and the old version can be
evicted. \"remove\" ends the pin. Pinned chunks count towards the limit: if they fill it, nothing
else is stored.

Examples:
  nuthatch chunks pin https://host/model.bin
  nuthatch chunks pin --prefix s3://bucket/models/

Exit status:
  0  all objects are pinned
  1  an object is not in the cache; the others are pinned
  2  invalid command line
  3  any other error, for example: there is no cache in the folder, another process has its lock,
     one of its files cannot be read, the summary cannot be printed (the error message contains it:
     the change is made)";

/// Protect objects from eviction
#[derive(Debug, Args)]
#[command(after_long_help = PIN_NOTES)]
pub(super) struct Pin {
    #[command(flatten)]
    selection: Selection,
}

const UNPIN_NOTES: &str = "\
Examples:
  nuthatch chunks unpin https://host/model.bin
  nuthatch chunks unpin --prefix ''              all

Exit status:
  0  all objects are unpinned
  1  an object is not in the cache; the others are unpinned
  2  invalid command line
  3  any other error, for example: there is no cache in the folder, another process has its lock,
     one of its files cannot be read, the summary cannot be printed (the error message contains it:
     the change is made)";

/// Remove the pins of objects
#[derive(Debug, Args)]
#[command(after_long_help = UNPIN_NOTES)]
pub(super) struct Unpin {
    #[command(flatten)]
    selection: Selection,
}

const REMOVE_NOTES: &str = "\
Removes all versions of an object, pinned or not, and the pin. Their disk space is freed when their
segments are evicted: \"nuthatch chunks prune\" evicts segments that hold nothing else.

Examples:
  nuthatch chunks remove https://host/old.parquet
  nuthatch chunks remove --prefix https://host/2025/ && nuthatch chunks prune

Exit status:
  0  all objects were removed
  1  an object was not in the cache; the others were removed
  2  invalid command line
  3  any other error, for example: there is no cache in the folder, one of its files cannot be
     read, the summary cannot be printed (the error message contains it: the objects are removed)";

/// Remove objects from the cache
#[derive(Debug, Args)]
#[command(after_long_help = REMOVE_NOTES)]
pub(super) struct Remove {
    #[command(flatten)]
    selection: Selection,
}

/// The objects of a command, by name or by prefix.
#[derive(Debug, Args)]
struct Selection {
    /// The addresses or names of objects, as "list" shows them
    #[arg(value_name = "NAME", required_unless_present = "prefix")]
    names: Vec<String>,
    /// Select all objects whose address or name begins with this text
    #[arg(long, value_name = "TEXT", conflicts_with = "names")]
    prefix: Option<String>,
    #[command(flatten)]
    folder: FolderArgs,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Pin {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        self.selection.each("pinned", |chunks, object| {
            if !is_latest(chunks, object) {
                return Ok(None);
            }
            pin(chunks, object, true)
        })
    }
}

impl Unpin {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        self.selection.each("not pinned", |chunks, object| pin(chunks, object, false))
    }
}

impl Remove {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        self.selection.each("removed", |chunks, object| Ok(Some(chunks.remove(&object.key)?)))
    }
}

fn pin(chunks: &Chunks, object: &Object, pinned: bool) -> Result<Option<u64>, Failure> {
    chunks.pin(&object.key, pinned)?;
    Ok(Some(object.chunks))
}

/// Returns whether this is the latest version at its address: the one that the origin confirmed
/// last, or otherwise the one that was stored last.
fn is_latest(chunks: &Chunks, object: &Object) -> bool {
    let Some(address) = object.key.address() else { return true };
    if let Some(known) = chunks.metadata(&address) {
        return known.key == object.key;
    }
    let versions = chunks.list().into_iter();
    let versions = versions.filter(|other| other.key.address().as_ref() == Some(&address));
    let last = versions.map(|other| (other.put_ms, other.key)).max();
    last.is_none_or(|(_, last)| last == object.key)
}

impl Selection {
    /// Calls `operation` for each selected object, and prints a summary. `operation` returns the
    /// number of chunks, or `None` if it did nothing.
    fn each(
        &self,
        done: &str,
        operation: impl Fn(&Chunks, &Object) -> Result<Option<u64>, Failure>,
    ) -> Result<Outcome, Failure> {
        let cache = self.folder.open()?;
        // A name can be an address as for "get", with secrets.
        let plain = |name: &String| plain_address(name).ok();
        let plain: Vec<_> = self.names.iter().map(plain).collect();
        let mut missing: BTreeSet<_> = (0..self.names.len()).collect();
        let (mut objects, mut chunks) = (0_u64, 0_u64);
        let (objects_there, unreadable) = cache.list_all();
        for object in objects_there {
            let name = object_name(&object.key);
            let named = |at: &usize| name == self.names[*at] || plain[*at].as_ref() == Some(&name);
            let found: Vec<_> = (0..self.names.len()).filter(named).collect();
            let below = self.prefix.as_ref().is_some_and(|prefix| name.starts_with(prefix));
            if below || !found.is_empty() {
                missing.retain(|at| !found.contains(at));
                if let Some(concerned) = operation(&cache, &object)? {
                    chunks += concerned;
                    objects += 1;
                }
            }
        }
        print_summary(&if self.json {
            JsonObject::new().plain("objects", objects).plain("chunks", chunks).line()
        } else {
            let (objects, chunks) = (grouped(objects), grouped(chunks));
            format!("{done}: objects {objects}, chunks {chunks}\n")
        })?;
        let folder = cache.path().display();
        for &at in &missing {
            let name = plain[at].as_ref().filter(|_| self.names[at].contains("://"));
            let name = escaped(name.unwrap_or(&self.names[at]));
            print_message(format_args!("{folder}: no object \"{name}\""));
        }
        check_readable(&cache, &unreadable, "objects in them stay as they were")?;
        Ok(if missing.is_empty() { Outcome::Success } else { Outcome::NotFound })
    }
}
