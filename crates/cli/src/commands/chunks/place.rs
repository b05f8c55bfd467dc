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
    /// those of the limit, or come from them. A folder that cannot be opened is not used; with
    /// `offline` that is an error. The caller reports the warnings and the problem of the cache.
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
            Ok(Contents::Other) => {
                let folder = folder.display();
                let problem = "expected a cache or an empty folder, found other files";
                return Err(Failure::Error(format!("{folder}: {problem}")));
            }
            Ok(Contents::Segments) => limit.confirm(&folder)?,
            // A folder that cannot be listed cannot be opened either.
            Ok(Contents::Nothing) | Err(_) => {}
        }
        let cache = ObjectCache::open(folder, options, settings)?;
        match cache.folder_problem() {
            Some(problem) if offline => Err(problem.into()),
            _ => Ok(cache),
        }
    }

    /// Opens a cache that must be there, with the limits that it has.
    pub(super) fn open(&self) -> Result<Chunks, Failure> {
        let folder = self.folder()?;
        let contents = Contents::of(&folder).map_err(nuthatch_chunks::Error::from)?;
        if contents != Contents::Segments {
            // Opening would make one, wherever the folder is.
            let folder = folder.display();
            return Err(Failure::Error(format!("{folder}: expected a cache, found none")));
        }
        Ok(Chunks::open(&folder, &Options::new())?)
    }
}

/// Prints the warnings of a folder that was opened.
pub(super) fn tell_warnings(chunks: &Chunks) {
    for warning in chunks.warnings() {
        tell(format_args!("warning: {warning}"));
    }
}
