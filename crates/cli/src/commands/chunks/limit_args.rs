//! The arguments for the settings of a cache folder, and the report of what a lower limit evicts.

use crate::outcome::Failure;
use crate::terminal::print_message;
use clap::Args;
use nuthatch_chunks::{Chunks, Options};
use nuthatch_origins::Error;
use nuthatch_units::{bytes, parse_size};
use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::Path;

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct LimitArgs {
    /// Limit of the cache folder from now on, such as 10GB or 512MiB; 10 GiB for a new folder
    ///
    /// At least 4MiB. A limit below the bytes in use evicts the excess at once. On a terminal the
    /// command asks first, unless --yes is given. It prints how much it evicted.
    #[arg(long = "limit", value_name = "SIZE", value_parser = parse_limit)]
    bytes: Option<u64>,
    /// Do not ask before a lower limit evicts chunks
    #[arg(short, long)]
    yes: bool,
    /// Let the group of the folder read and write the cache, from now on: modes 2770 and 0660
    ///
    /// Without it, only the owner of a new folder has access: modes 0700 and 0600, whatever the
    /// umask is.
    #[arg(long)]
    share_with_group: bool,
}

impl LimitArgs {
    /// Returns how the folder is opened.
    pub(super) fn options(self) -> Options {
        let mut options = Options::new();
        if self.share_with_group {
            options = options.share_with_group(true);
        }
        self.bytes.map_or(options.clone(), |limit| options.limit(limit))
    }

    /// Returns the options that change settings of the folder, as they are on the command line.
    fn settings(self) -> Vec<&'static str> {
        let limit = self.bytes.map(|_| "--limit");
        limit.into_iter().chain(self.share_with_group.then_some("--share-with-group")).collect()
    }

    /// Returns a failure if an option of the folder was not applied because the folder cannot be
    /// opened.
    ///
    /// # Errors
    /// There is such an option.
    pub(super) fn check_applied(self, problem: &Error) -> Result<(), Failure> {
        match &self.settings()[..] {
            [] => Ok(()),
            options => {
                let options = options.join(" and ");
                Err(Failure::Usage(format!("{options}: not applied: {problem}")))
            }
        }
    }

    /// Requests a confirmation on a terminal if the limit is below the bytes in use. Returns these
    /// bytes then, for [`LimitArgs::report`].
    ///
    /// # Errors
    ///
    /// Fails if the user does not confirm.
    pub(super) fn confirm(self, folder: &Path) -> Result<Option<u64>, Failure> {
        let Some(limit) = self.bytes else { return Ok(None) };
        // Opening the folder for use reports why it cannot be opened or changed.
        let Ok(chunks) = Chunks::open(folder, &Options::new()) else { return Ok(None) };
        let stat = chunks.stat();
        drop(chunks);
        let used = stat.used;
        if used <= limit || stat.read_only {
            return Ok(None);
        }
        if self.yes || !(stdin().is_terminal() && stderr().is_terminal()) {
            return Ok(Some(used));
        }
        let (folder, used_text) = (folder.display(), bytes(used));
        let evicted = bytes(used - limit);
        let consequence =
            format!("{folder}: {used_text} in use; a limit of {} evicts {evicted}", bytes(limit));
        // If the question cannot be shown, reading the answer fails.
        let _ = write!(stderr(), "{consequence}. Continue? [y/N] ");
        let mut answer = String::new();
        let read = stdin().read_line(&mut answer);
        if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
            return Ok(Some(used));
        }
        let problem = "nothing was evicted, and the limit was not changed";
        Err(Failure::Error(format!("{folder}: {problem}")))
    }

    /// Prints how much the lower limit evicted of the bytes that were in use before.
    pub(super) fn report(self, before: Option<u64>, chunks: &Chunks) {
        let Some((limit, before)) = self.bytes.zip(before) else { return };
        let used = chunks.stat().used;
        let (folder, limit_text) = (chunks.path().display(), bytes(limit));
        let evicted = bytes(before.saturating_sub(used));
        let above = if used > limit {
            "; the rest is pinned, or other processes are writing it"
        } else {
            ""
        };
        let used = bytes(used);
        print_message(format_args!(
            "{folder}: the limit of {limit_text} evicted {evicted}; {used} in use{above}"
        ));
    }
}

fn parse_limit(text: &str) -> Result<u64, String> {
    let limit = parse_size(text)?;
    if limit < Options::MIN_LIMIT {
        return Err(format!("expected at least {}", bytes(Options::MIN_LIMIT)));
    }
    Ok(limit)
}
