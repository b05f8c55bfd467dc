//! The arguments with the store and the table.

use super::open::open_store;
use super::remote_store::{ConnectionArgs, RemoteStore};
use crate::outcome::Failure;
use clap::Args;
use nuthatch_rpc::ClientOptions;
use nuthatch_store::{Kind, Options, Store, Table};
use std::path::{Path, PathBuf};

/// The name of the default table.
const DEFAULT_TABLE: &str = "default";

/// The argument with a store: its folder, or the address of a server.
#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    /// The folder of the store, or the address of a server: grpc://HOST:PORT, or grpcs://HOST:PORT
    /// with TLS
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
}

/// The argument with a store, for commands that need its files.
#[derive(Debug, Args)]
pub(super) struct FolderArgs {
    /// The folder of the store
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
}

/// The argument that allows network filesystems.
#[derive(Debug, Args)]
pub(super) struct NetworkArgs {
    /// Allow a store on a network filesystem; safe only if a single machine uses it
    #[arg(long)]
    allow_network_filesystem: bool,
}

impl NetworkArgs {
    /// Returns the options with this setting.
    pub(super) fn apply(&self, options: Options) -> Options {
        options.allow_network_filesystem(self.allow_network_filesystem)
    }
}

/// The arguments with the table.
#[derive(Debug, Args)]
pub(super) struct TableArgs {
    /// Name of the table
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TABLE, conflicts_with = "main")]
    table: String,
    /// Use LMDB's main (unnamed) table, where other programs often keep all rows
    #[arg(long)]
    main: bool,
}

/// Returns the address of a server, if the path is one.
fn address(path: &Path) -> Option<&str> {
    let is_address = |path: &&str| path.starts_with("grpc://") || path.starts_with("grpcs://");
    path.to_str().filter(is_address)
}

impl FolderArgs {
    pub(super) fn path(&self) -> Result<&Path, Failure> {
        match address(&self.path) {
            Some(path) => {
                let message = "expected the folder of a store, found an address";
                Err(Failure::Usage(format!("{path}: {message}")))
            }
            None => Ok(&self.path),
        }
    }

    /// Opens an existing store for reading.
    pub(super) fn open_read_only(&self) -> Result<Store, Failure> {
        Ok(open_store(self.path()?, &self.options().read_only(true))?)
    }

    /// Returns the options of the command line.
    pub(super) fn options(&self) -> Options {
        self.network.apply(Options::new())
    }
}

impl StoreArgs {
    /// Connects to the server of the store. Returns `None` if the store is in a folder.
    pub(super) fn remote(&self, reach: &ConnectionArgs) -> Result<Option<RemoteStore>, Failure> {
        self.remote_with(reach, |options| options)
    }

    /// Connects like [`remote`](Self::remote), with the options that `adjust` returns.
    pub(super) fn remote_with(
        &self,
        reach: &ConnectionArgs,
        adjust: impl FnOnce(ClientOptions) -> ClientOptions,
    ) -> Result<Option<RemoteStore>, Failure> {
        let Some(address) = address(&self.path) else { return Ok(None) };
        RemoteStore::connect(address, &adjust(reach.options()?)).map(Some)
    }

    /// Opens an existing store for reading.
    pub(super) fn open_read_only(&self) -> Result<Store, Failure> {
        self.open(Options::new().read_only(true))
    }

    /// Opens an existing store for writing.
    pub(super) fn open_writable(&self) -> Result<Store, Failure> {
        self.open(Options::new().create(false))
    }

    /// Opens a store for writing, and creates it if there is none.
    pub(super) fn open_or_create(&self) -> Result<Store, Failure> {
        self.open(Options::new())
    }

    /// Returns the store's path or address as the user gave it, for messages.
    pub(super) fn display_path(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns an error of the store with the store's path, which errors about keys and tables do
    /// not have.
    pub(super) fn failure(&self, error: &nuthatch_store::Error) -> Failure {
        match error.code() {
            "length" | "table" | "unordered" | "decode" | "transaction-full" | "full"
            | "readers-full" | "no-changes-kept" | "fell-behind" | "ahead" => {
                Failure::Error(format!("{}: {error}", self.display_path()))
            }
            _ => Failure::Error(error.to_string()),
        }
    }

    fn open(&self, options: Options) -> Result<Store, Failure> {
        Ok(open_store(&self.path, &self.network.apply(options))?)
    }
}

impl TableArgs {
    /// Returns the name of the table for a server; empty for the main table.
    pub(super) fn name(&self) -> &str {
        if self.main { "" } else { &self.table }
    }

    /// Creates the table through a server if it does not exist, of this kind if one is given.
    pub(super) fn create_remote(
        &self,
        remote: &RemoteStore,
        kind: Option<Kind>,
    ) -> Result<(), Failure> {
        if !self.main {
            remote.call(remote.client.create_table(&self.table, kind))?;
        }
        Ok(())
    }

    /// Returns the table of the store at `args`, which must exist.
    pub(super) fn find(&self, store: &Store, args: &StoreArgs) -> Result<Table, Failure> {
        if self.main {
            return Ok(store.main_table());
        }
        let found = store.find_table(&self.table).map_err(|error| args.failure(&error))?;
        if let Some(table) = found {
            return Ok(table);
        }
        let names = store.table_names()?;
        let tables = if names.is_empty() {
            "none; --main is the main table".to_owned()
        } else {
            format!("{}; --table chooses one, --main the main one", names.join(", "))
        };
        let (path, table) = (args.display_path(), &self.table);
        Err(Failure::Error(format!("{path}: expected a table \"{table}\", found {tables}")))
    }

    /// Returns the table of the store at `args`. Creates it if it does not exist, of this kind if
    /// one is given.
    pub(super) fn find_or_create(
        &self,
        store: &Store,
        args: &StoreArgs,
        kind: Option<Kind>,
    ) -> Result<Table, Failure> {
        if self.main {
            return Ok(store.main_table());
        }
        let created = match kind {
            Some(kind) => store.table_of(&self.table, kind),
            None => store.table(&self.table),
        };
        created.map_err(|error| args.failure(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_filesystem_is_allowed_only_with_the_flag() {
        for allow in [false, true] {
            let network = NetworkArgs { allow_network_filesystem: allow };
            let options = format!("{:?}", network.apply(Options::new()));
            let expected = format!("allow_network_filesystem: {allow}");
            assert!(options.contains(&expected), "{options}");
        }
    }
}
