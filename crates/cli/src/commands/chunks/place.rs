//! Which cache: its folder.

use super::limit::Limit;
use crate::commands::Failure;
use crate::streams::tell;
use clap::Args;
use nuthatch_chunks::{Chunks, Contents, Options};
use nuthatch_origins::{ObjectCache, Settings, default_folder};
use std::path::PathBuf;

/// Which cache.
#[derive(Clone, Debug, Args)]
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

    /// Opens a cache to read objects through, and makes it if the folder is empty. `options` are
    /// those of `limit`, perhaps with more. A folder that cannot be opened is done without, with a
    /// warning, unless reading without it is no use.
    pub(super) fn make(
        &self,
        limit: Limit,
        options: &Options,
        settings: Settings,
        offline: bool,
    ) -> Result<ObjectCache, Failure> {
        let folder = self.folder()?;
        match Contents::of(&folder) {
            // Its files would count, and those of the cache lie among them.
            Contents::Other => {
                let folder = folder.display();
                let problem = "expected a cache or an empty folder, found other files";
                return Err(Failure::Error(format!("{folder}: {problem}")));
            }
            Contents::Segments => limit.confirm(&folder)?,
            Contents::Nothing => {}
        }
        let cache = ObjectCache::open(folder, options, settings)?;
        for warning in cache.chunks().iter().flat_map(|chunks| chunks.warnings()) {
            tell(format_args!("warning: {warning}"));
        }
        if let Some(problem) = cache.folder_problem() {
            if offline {
                return Err(problem.into());
            }
            tell(format_args!("warning: {problem}; reads pass through to the origin"));
        }
        Ok(cache)
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
