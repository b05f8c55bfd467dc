//! `nuthatch store backup`.

use super::remote_store::{ConnectionArgs, RemoteStore};
use super::store_args::StoreArgs;
use crate::files::AtomicFile;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print_summary;
use clap::Args;
use nuthatch_units::duration;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

const BACKUP_NOTES: &str = "\
The copy has one consistent state of the store, and is a store itself. Other processes may read and
write meanwhile. All pages are verified before they are copied, so the file is read twice. A damaged
store is not copied. Only the user who runs this can read the copy: its file has mode 0600.

Examples:
  nuthatch store backup db /backups/today
  nuthatch store backup db /backups/small --compact
  nuthatch store backup grpc://db:7380 /backups/today

Exit status:
  0  the copy is complete and durable
  2  invalid command line
  3  any other error, for example: the store is damaged, the disk is full, the folder contains
     data.mdb, the summary cannot be printed (the error message contains it: the copy is complete)";

/// Copy a store while others use it
#[derive(Debug, Args)]
#[command(after_long_help = BACKUP_NOTES)]
pub(super) struct Backup {
    #[command(flatten)]
    store: StoreArgs,
    /// The folder of the copy; created if missing, but its parent must exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Leave free pages out; takes longer
    #[arg(long)]
    compact: bool,
    /// Print nothing
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Backup {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        match self.store.remote(&self.connection)? {
            Some(remote) => self.fetch(&remote)?,
            None => self.store.open_read_only()?.backup(&self.folder, self.compact)?,
        }
        if !self.quiet {
            let (folder, time) = (self.folder.display(), duration(start.elapsed()));
            print_summary(&format!("{folder}: copied, {time}\n"))?;
        }
        Ok(Outcome::Success)
    }
}

impl Backup {
    /// Receives a copy from a server and publishes it when it is complete.
    fn fetch(&self, remote: &RemoteStore) -> Result<(), Failure> {
        let wrong = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| Failure::Error(format!("{path}: {error}"))
        };
        let target = self.folder.join("data.mdb");
        if target.exists() {
            let found = "expected a folder without data.mdb for the copy, found one";
            return Err(wrong(&self.folder)(io::Error::other(found)));
        }
        let is_new = !self.folder.is_dir();
        if is_new {
            fs::create_dir(&self.folder).map_err(wrong(&self.folder))?;
        }
        let fetched = self.fetch_into(remote, &target);
        if fetched.is_err() && is_new {
            // A folder that is not empty stays.
            let _ = fs::remove_dir(&self.folder);
        }
        fetched
    }

    fn fetch_into(&self, remote: &RemoteStore, target: &Path) -> Result<(), Failure> {
        let wrong = |error: io::Error| Failure::Error(format!("{}: {error}", target.display()));
        // The store uses the same name for incomplete copies.
        let partial = self.folder.join("data.mdb.partial");
        let mut file = AtomicFile::create_private(partial, target.to_owned()).map_err(wrong)?;
        let mut parts = remote.call(remote.client.backup(self.compact))?;
        while let Some(part) = remote.wait(parts.next()) {
            let part = part.map_err(|error| remote.failure(&error))?;
            file.write_all(&part).map_err(wrong)?;
        }
        file.publish().map_err(wrong)
    }
}
