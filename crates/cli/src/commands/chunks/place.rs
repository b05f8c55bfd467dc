//! Which cache: its folder.

use crate::commands::Failure;
use clap::Args;
use nuthatch_chunks::{Chunks, Options};
use nuthatch_origins::{ObjectCache, Settings, default_folder};
use std::path::{Path, PathBuf};

/// Which cache.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The folder of the cache
    ///
    /// Without it: `$NUTHATCH_CACHE`, or nuthatch/chunks below `$XDG_CACHE_HOME` or ~/.cache.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Place {
    /// The folder.
    pub(super) fn folder(&self) -> Result<PathBuf, Failure> {
        self.cache.clone().or_else(default_folder).ok_or_else(|| {
            let expected = "expected --cache, or one of NUTHATCH_CACHE, XDG_CACHE_HOME and HOME";
            Failure::Usage(format!("the folder of the cache: {expected}, found none"))
        })
    }

    /// Opens a cache to read objects through, and makes it if the folder is empty; with a limit
    /// from now on, if there is one.
    pub(super) fn make(
        &self,
        limit: Option<u64>,
        settings: Settings,
    ) -> Result<ObjectCache, Failure> {
        let options = limit.map_or(Options::new(), |limit| Options::new().limit(limit));
        let folder = self.folder()?;
        if kind_of(&folder) == Kind::Other {
            // Its files would count, and those of the cache lie among them.
            let folder = folder.display();
            let problem = "expected a cache or an empty folder, found other files";
            return Err(Failure::Error(format!("{folder}: {problem}")));
        }
        Ok(ObjectCache::open(folder, &options, settings)?)
    }

    /// Opens a cache that must be there, with the limits that it has.
    pub(super) fn open(&self) -> Result<Chunks, Failure> {
        let folder = self.folder()?;
        if kind_of(&folder) != Kind::Cache {
            // Opening would make one, wherever the folder is.
            let folder = folder.display();
            return Err(Failure::Error(format!("{folder}: expected a cache, found none")));
        }
        Ok(Chunks::open(&folder, &Options::new())?)
    }
}

/// Files that a cache has beside its segments.
const FILES: [&str; 5] = ["index", "index.new", "pins", "pins.new", "claims"];

/// What a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It has files of a cache, from which at least what is whole can be used.
    Cache,
    /// There is nothing in it, or no such folder.
    Empty,
    /// It has other files alone.
    Other,
}

fn kind_of(folder: &Path) -> Kind {
    let Ok(entries) = folder.read_dir() else { return Kind::Empty };
    let own = |name: &str| {
        let segment = name.strip_suffix(".seg").is_some_and(|stem| stem.len() == 16);
        segment || FILES.contains(&name)
    };
    let mut kind = Kind::Empty;
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(own) {
            return Kind::Cache;
        }
        kind = Kind::Other;
    }
    kind
}
