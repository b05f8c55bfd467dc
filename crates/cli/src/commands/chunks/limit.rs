//! A limit for a cache that already has more.

use crate::commands::Failure;
use crate::figures::{bytes, parse_size};
use crate::streams::tell;
use clap::Args;
use nuthatch_chunks::{Chunks, Options};
use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::Path;

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Limit {
    /// Limit of the cache folder from now on, such as 10GB or 512MiB; 10 GiB for a new folder
    ///
    /// A limit below the bytes in use evicts the excess at once. On a terminal the command asks
    /// first; otherwise it prints how much it evicts.
    #[arg(long = "limit", value_name = "SIZE", value_parser = parse_size)]
    bytes: Option<u64>,
    /// Do not ask before a lower limit evicts chunks
    #[arg(short, long)]
    yes: bool,
    /// Let the group of the folder read and write the cache, from now on: modes 2770 and 0660
    ///
    /// A new folder is for its owner alone: modes 0700 and 0600, whatever the umask is.
    #[arg(long)]
    share_with_group: bool,
}

impl Limit {
    /// Returns how the folder is opened.
    pub(super) fn options(self) -> Options {
        let mut options = Options::new();
        if self.share_with_group {
            options = options.share_with_group(true);
        }
        self.bytes.map_or(options.clone(), |limit| options.limit(limit))
    }

    /// Asks or tells what a lower limit evicts.
    ///
    /// # Errors
    /// The answer was not yes.
    pub(super) fn confirm(self, folder: &Path) -> Result<(), Failure> {
        let Some(limit) = self.bytes else { return Ok(()) };
        // One that cannot be opened is no reason to ask; opening it for use tells why.
        let Ok(chunks) = Chunks::open(folder, &Options::new()) else { return Ok(()) };
        let used = chunks.stat().used;
        drop(chunks);
        if used <= limit {
            return Ok(());
        }
        let (folder, used_text) = (folder.display(), bytes(used));
        let evicted = bytes(used - limit);
        let told =
            format!("{folder}: {used_text} in use; a limit of {} evicts {evicted}", bytes(limit));
        if self.yes || !(stdin().is_terminal() && stderr().is_terminal()) {
            tell(told);
            return Ok(());
        }
        // Where nobody sees the question, nobody answers it.
        let _ = write!(stderr(), "{told}. Go on? [y/N] ");
        let mut answer = String::new();
        let read = stdin().read_line(&mut answer);
        if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
            return Ok(());
        }
        let problem = "nothing was evicted, and the limit stays as it was";
        Err(Failure::Error(format!("{folder}: {problem}")))
    }
}
