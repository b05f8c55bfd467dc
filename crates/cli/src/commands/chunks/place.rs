//! Which cache: its folder.

use crate::commands::Failure;
use clap::Args;
use nuthatch_chunks::{Chunks, Contents, Options};
use nuthatch_origins::{ObjectCache, Settings, default_folder};
use std::path::PathBuf;

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
        if Contents::of(&folder) == Contents::Other {
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
        if Contents::of(&folder) != Contents::Segments {
            // Opening would make one, wherever the folder is.
            let folder = folder.display();
            return Err(Failure::Error(format!("{folder}: expected a cache, found none")));
        }
        Ok(Chunks::open(&folder, &Options::new())?)
    }
}
