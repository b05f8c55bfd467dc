//! The argument with the folder of the cache, and opening it.

use super::limit_args::LimitArgs;
use crate::outcome::Failure;
use crate::process;
use crate::terminal::print_message;
use clap::Args;
use nuthatch_chunks::{Chunks, Contents, FolderError, Options, Unreadable};
use nuthatch_origins::{Error, ObjectCache, Settings, default_folder};
use std::path::PathBuf;

/// The argument with the folder of the cache.
#[derive(Clone, Debug, Args)]
pub(super) struct FolderArgs {
    /// The folder of the cache
    ///
    /// Default: `$NUTHATCH_CACHE`, or nuthatch/chunks below `$XDG_CACHE_HOME` or ~/.cache.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl FolderArgs {
    /// Returns the folder, or the default one.
    pub(super) fn folder(&self) -> Result<PathBuf, Failure> {
        self.cache.clone().or_else(default_folder).ok_or_else(|| {
            let expected = "expected --cache, or one of NUTHATCH_CACHE, XDG_CACHE_HOME and HOME";
            Failure::Usage(format!("the folder of the cache: {expected}, found none"))
        })
    }

    /// Opens a cache to read objects through, and creates it if the folder is empty. `options` are
    /// those of `limit`, possibly with additions. A folder that cannot be opened is not used; with
    /// `offline` that is an error. The caller reports the warnings and the problem of the cache.
    ///
    /// # Errors
    /// Fails, among other causes, if an option would change a folder that can only be read.
    pub(super) fn open_or_create(
        &self,
        limit: LimitArgs,
        options: &Options,
        settings: Settings,
        offline: bool,
    ) -> Result<ObjectCache, Failure> {
        let folder = self.folder()?;
        let before = match Contents::of(&folder) {
            // The other files would count towards the limit.
            Ok(Contents::Other) => {
                let folder = folder.display();
                let problem = "expected a cache or an empty folder, found other files";
                return Err(Failure::Error(format!("{folder}: {problem}")));
            }
            Ok(Contents::Segments) => limit.confirm(&folder)?,
            // Opening reports why a folder cannot be listed.
            Ok(Contents::Nothing) | Err(_) => None,
        };
        let cache = ObjectCache::open(folder, options, settings).map_err(not_opened)?;
        if let Some(chunks) = cache.chunks() {
            limit.report(before, &chunks);
        }
        match cache.folder_problem() {
            Some(problem) if offline => Err(problem.into()),
            _ => Ok(cache),
        }
    }

    /// Opens an existing cache with its own limits.
    pub(super) fn open(&self) -> Result<Chunks, Failure> {
        let folder = self.folder()?;
        let contents = Contents::of(&folder).map_err(nuthatch_chunks::Error::from)?;
        if contents != Contents::Segments {
            // Opening would create one.
            let folder = folder.display();
            return Err(Failure::Error(format!("{folder}: expected a cache, found none")));
        }
        let files = process::raise_file_limit();
        let open_files = (files / 4).min(Options::OPEN_FILES as u64) as usize;
        Ok(Chunks::open(&folder, &Options::new().open_files(open_files))?)
    }
}

/// Returns the failure of a cache that cannot be opened: an option that cannot be applied is a
/// mistake on the command line.
fn not_opened(error: Error) -> Failure {
    if let Error::Cache(cause) = &error
        && let nuthatch_chunks::Error::Folder(FolderError::Options { option, expected, found }) =
            &**cause
    {
        let option = option.replace('_', "-");
        return Failure::Usage(format!("--{option}: expected {expected}, found {found}"));
    }
    error.into()
}

/// Prints the segments that could not be read, and returns a failure if there are any.
pub(super) fn check_readable(
    chunks: &Chunks,
    unreadable: &[Unreadable],
    outcome: &str,
) -> Result<(), Failure> {
    for Unreadable { segment, reason, .. } in unreadable {
        print_message(format_args!("{}: {reason}", chunks.path().join(segment).display()));
    }
    match unreadable.len() {
        0 => Ok(()),
        count => Err(Failure::Error(format!(
            "{}: {count} segments could not be read; {outcome}",
            chunks.path().display()
        ))),
    }
}

/// Prints the warnings of a folder that was opened.
pub(super) fn print_warnings(chunks: &Chunks) {
    for warning in chunks.warnings() {
        print_message(format_args!("warning: {warning}"));
    }
}
