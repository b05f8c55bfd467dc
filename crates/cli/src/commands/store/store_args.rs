//! Which store, and which table of it.

use super::open::open_store;
use super::remote_store::{Reach, Remote};
use crate::outcome::Failure;
use clap::Args;
use nuthatch_rpc::ClientOptions;
use nuthatch_store::{Kind, Options, Store, Table};
use std::path::{Path, PathBuf};

/// The table that is meant unless another one is named.
const DEFAULT: &str = "default";

/// Which store: in a folder, or behind a server.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The folder of the store, or the address of a server: grpc://HOST:PORT, or grpcs://HOST:PORT
    /// with TLS
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    network: Network,
}

/// Which store, for what needs its files.
#[derive(Debug, Args)]
pub(super) struct Folder {
    /// The folder of the store
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    network: Network,
}

/// Whether a folder may be on a network filesystem.
#[derive(Debug, Args)]
pub(super) struct Network {
    /// Allow a store on a network filesystem; safe only if a single machine uses it
    #[arg(long)]
    allow_network_filesystem: bool,
}

impl Network {
    /// Returns the options with this setting.
    pub(super) fn apply(&self, options: Options) -> Options {
        options.allow_network_filesystem(self.allow_network_filesystem)
    }
}

/// Which table.
#[derive(Debug, Args)]
pub(super) struct Tabled {
    /// The table
    #[arg(long, value_name = "NAME", default_value = DEFAULT, conflicts_with = "main")]
    table: String,
    /// Use LMDB's main (unnamed) table, where other programs often keep all rows
    #[arg(long)]
    main: bool,
}

/// The address of a server, if it is one.
fn address(path: &Path) -> Option<&str> {
    let is_address = |path: &&str| path.starts_with("grpc://") || path.starts_with("grpcs://");
    path.to_str().filter(is_address)
}

impl Folder {
    pub(super) fn path(&self) -> Result<&Path, Failure> {
        match address(&self.path) {
            Some(path) => {
                let message = "expected the folder of a store, found an address";
                Err(Failure::Usage(format!("{path}: {message}")))
            }
            None => Ok(&self.path),
        }
    }

    /// Opens a store that must be there, to read.
    pub(super) fn read(&self) -> Result<Store, Failure> {
        Ok(open_store(self.path()?, &self.options().read_only(true))?)
    }

    /// Returns the options of the command line.
    pub(super) fn options(&self) -> Options {
        self.network.apply(Options::new())
    }
}

impl Place {
    /// Connects to the server of the store. Returns `None` if the store is in a folder.
    pub(super) fn remote(&self, reach: &Reach) -> Result<Option<Remote>, Failure> {
        self.remote_with(reach, |options| options)
    }

    /// As [`remote`](Self::remote), with options that `adjust` returns.
    pub(super) fn remote_with(
        &self,
        reach: &Reach,
        adjust: impl FnOnce(ClientOptions) -> ClientOptions,
    ) -> Result<Option<Remote>, Failure> {
        let Some(address) = address(&self.path) else { return Ok(None) };
        Remote::connect(address, &adjust(reach.options()?)).map(Some)
    }

    /// Opens a store that must be there, to read.
    pub(super) fn read(&self) -> Result<Store, Failure> {
        self.open(Options::new().read_only(true))
    }

    /// Opens a store that must be there, to write.
    pub(super) fn change(&self) -> Result<Store, Failure> {
        self.open(Options::new().create(false))
    }

    /// Opens a store to write, and makes it if there is none.
    pub(super) fn make(&self) -> Result<Store, Failure> {
        self.open(Options::new())
    }

    /// Returns the store's path or address as the user gave it, for messages.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns an error of the store with the store's path, which errors about keys and tables do
    /// not have.
    pub(super) fn failure(&self, error: &nuthatch_store::Error) -> Failure {
        match error.code() {
            "length" | "table" | "unordered" | "decode" | "transaction-full" | "full"
            | "readers-full" | "no-changes-kept" | "fell-behind" | "ahead" => {
                Failure::Error(format!("{}: {error}", self.shown()))
            }
            _ => Failure::Error(error.to_string()),
        }
    }

    fn open(&self, options: Options) -> Result<Store, Failure> {
        Ok(open_store(&self.path, &self.network.apply(options))?)
    }
}

impl Tabled {
    /// The name for a server; empty for the main table.
    pub(super) fn name(&self) -> &str {
        if self.main { "" } else { &self.table }
    }

    /// Has a server make the table if it is not there, of this kind if it matters.
    pub(super) fn make_at(&self, remote: &Remote, kind: Option<Kind>) -> Result<(), Failure> {
        if !self.main {
            remote.ask(remote.client.create_table(&self.table, kind))?;
        }
        Ok(())
    }

    /// Returns the table of the store at `place`, which must exist.
    pub(super) fn find(&self, store: &Store, place: &Place) -> Result<Table, Failure> {
        if self.main {
            return Ok(store.main_table());
        }
        let found = store.find_table(&self.table).map_err(|error| place.failure(&error))?;
        if let Some(table) = found {
            return Ok(table);
        }
        let names = store.table_names()?;
        let there = if names.is_empty() {
            "none; --main is the main table".to_owned()
        } else {
            format!("{}; --table chooses one, --main the main one", names.join(", "))
        };
        let (path, table) = (place.shown(), &self.table);
        Err(Failure::Error(format!("{path}: expected a table \"{table}\", found {there}")))
    }

    /// Returns the table of the store at `place`, made if it does not exist, of this kind if it
    /// matters.
    pub(super) fn make(
        &self,
        store: &Store,
        place: &Place,
        kind: Option<Kind>,
    ) -> Result<Table, Failure> {
        if self.main {
            return Ok(store.main_table());
        }
        let made = match kind {
            Some(kind) => store.table_of(&self.table, kind),
            None => store.table(&self.table),
        };
        made.map_err(|error| place.failure(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_filesystem_is_allowed_only_with_the_flag() {
        for allow in [false, true] {
            let network = Network { allow_network_filesystem: allow };
            let options = format!("{:?}", network.apply(Options::new()));
            let expected = format!("allow_network_filesystem: {allow}");
            assert!(options.contains(&expected), "{options}");
        }
    }
}
