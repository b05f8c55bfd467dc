//! A store behind a server.

use super::condition::OwnedCondition;
use super::local::Local;
use super::scan_options::ScanOptions;
use super::tables::TableRef;
use super::writes::Writes;
use crate::convert::{Value, unix_seconds};
use crate::failure::{Failure, Outcome};
use crate::runtime::Work;
use crate::store::results::{Entry, Stat};
use nuthatch_rpc::{Client, ClientOptions};
use nuthatch_store::{Kind, Range, Written};
use std::fs::{self, File};
use std::future::Future;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// A client of a server, until it is closed.
pub(crate) struct Remote {
    address: String,
    open: RwLock<Option<Client>>,
}

impl Remote {
    pub(crate) async fn connect(address: String, options: ClientOptions) -> Outcome<Self> {
        let client = Client::connect_with(&address, &options).await?;
        Ok(Self { address, open: RwLock::new(Some(client)) })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn client(&self) -> Outcome<Client> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| Failure::closed("store"))
    }

    pub(crate) fn close(&self) {
        let client = self.open.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(client);
    }

    /// Returns work that calls the server, after it has created the table if necessary and
    /// permitted.
    pub(crate) fn with<T, F>(
        self: &Arc<Self>,
        table: &TableRef,
        call: impl FnOnce(Client, TableRef) -> F + Send + 'static,
    ) -> Work<T>
    where
        T: Send + 'static,
        F: Future<Output = Outcome<T>> + Send,
    {
        let (this, table) = (Arc::clone(self), table.clone());
        Work::awaited(async move {
            let client = this.client()?;
            ensure_table(&client, &table).await?;
            call(client, table).await
        })
    }

    pub(crate) fn get(self: &Arc<Self>, table: &TableRef, key: Vec<u8>) -> Work<Option<Value>> {
        self.with(table, |client, table| async move {
            Ok(client.get(table.name(), &key).await?.map(Value::Shared))
        })
    }

    pub(crate) fn get_many(
        self: &Arc<Self>,
        table: &TableRef,
        keys: Vec<Vec<u8>>,
    ) -> Work<Vec<Option<Value>>> {
        self.with(table, |client, table| async move {
            let found = client.get_many(table.name(), &keys).await?;
            Ok(found.into_iter().map(|value| value.map(Value::Shared)).collect())
        })
    }

    pub(crate) fn entry(self: &Arc<Self>, table: &TableRef, key: Vec<u8>) -> Work<Option<Entry>> {
        self.with(table, |client, table| async move {
            Ok(client.entry(table.name(), &key).await?.map(Entry::from))
        })
    }

    pub(crate) fn count(self: &Arc<Self>, table: &TableRef, range: Range) -> Work<u64> {
        self.with(
            table,
            |client, table| async move { Ok(client.count(table.name(), &range).await?) },
        )
    }

    pub(crate) fn put(
        self: &Arc<Self>,
        table: &TableRef,
        (key, value): (Vec<u8>, Vec<u8>),
        expires_at_ms: Option<u64>,
    ) -> Work<Written> {
        self.with(table, move |client, table| async move {
            Ok(match expires_at_ms {
                Some(at) => client.put_until(table.name(), &key, &value, at).await?,
                None => client.put(table.name(), &key, &value).await?,
            })
        })
    }

    /// Writes a value that does not expire, if a condition is met.
    pub(crate) fn put_if(
        self: &Arc<Self>,
        table: &TableRef,
        (key, value): (Vec<u8>, Vec<u8>),
        condition: OwnedCondition,
    ) -> Work<bool> {
        self.with(table, move |client, table| async move {
            let condition = condition.condition();
            Ok(client.put_if(table.name(), &key, &value, condition).await?.is_some())
        })
    }

    pub(crate) fn delete(self: &Arc<Self>, table: &TableRef, key: Vec<u8>) -> Work<bool> {
        self.with(
            table,
            |client, table| async move { Ok(client.delete(table.name(), &key).await?) },
        )
    }

    pub(crate) fn delete_range(self: &Arc<Self>, table: &TableRef, range: Range) -> Work<u64> {
        self.with(table, |client, table| async move {
            Ok(client.delete_range(table.name(), &range).await?)
        })
    }

    /// Commits the writes as a whole or not at all.
    pub(crate) fn write(self: &Arc<Self>, table: &TableRef, writes: Writes) -> Work<Written> {
        self.with(table, move |client, table| async move {
            ensure_tables(&client, &writes, &table).await?;
            Ok(client.write_batch(writes.remote_batch(&table)?).await?)
        })
    }

    /// Creates a table if `create` is true. Otherwise makes no call: later calls report a missing
    /// table.
    pub(crate) fn table(self: &Arc<Self>, table: &TableRef, create: bool) -> Work<()> {
        let (this, table) = (Arc::clone(self), table.clone());
        Work::awaited(async move {
            let client = this.client()?;
            if create {
                client.create_table(table.name(), table.kind()).await?;
            }
            table.note_exists();
            Ok(())
        })
    }

    pub(crate) fn tables(self: &Arc<Self>) -> Work<Vec<(String, bool)>> {
        self.with(&main_table(), |client, _| async move {
            let tables = client.tables().await?.into_iter();
            Ok(tables.map(|(name, kind)| (name, kind == Kind::Stamped)).collect())
        })
    }

    pub(crate) fn stat(self: &Arc<Self>) -> Work<Stat> {
        self.with(&main_table(), |client, _| async move { Ok(client.stat().await?.into()) })
    }

    /// Downloads a copy of the store to a folder. The file appears under its name when it is
    /// complete.
    pub(crate) fn backup(self: &Arc<Self>, folder: PathBuf, compact: bool) -> Work<()> {
        self.with(&main_table(), move |client, _| async move {
            let partial = folder.join("data.mdb.partial");
            let fetched = fetch(&client, &folder, &partial, compact).await;
            if fetched.is_err() {
                // The file may not exist.
                let _ = fs::remove_file(&partial);
            }
            fetched
        })
    }

    /// Returns the stream of a scan. It makes no request before the first read.
    pub(crate) fn scan(
        &self,
        table: &TableRef,
        options: &ScanOptions,
    ) -> Outcome<nuthatch_rpc::RowStream> {
        Ok(self.client()?.scan(table.name(), &options.remote_scan()))
    }

    /// Returns a reference to the default table.
    pub(crate) fn default_table() -> TableRef {
        Local::default_table()
    }
}

/// Returns a reference to the main table, which always exists.
fn main_table() -> TableRef {
    TableRef::new(String::new(), None)
}

/// Creates a table on the server, unless a call has used it before.
pub(crate) async fn ensure_table(client: &Client, table: &TableRef) -> Outcome<()> {
    if table.may_be_missing() {
        match client.create_table(table.name(), table.kind()).await {
            Ok(_) => table.note_exists(),
            // A table cannot be created on a read-only store, or without permission to write. Later
            // calls report a missing table.
            Err(error) if ["forbidden", "read-only"].contains(&error.code()) => table.note_exists(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Creates the tables of all writes on the server, unless calls have used them before.
pub(crate) async fn ensure_tables(
    client: &Client,
    writes: &Writes,
    default: &TableRef,
) -> Outcome<()> {
    for table in writes.tables(default) {
        ensure_table(client, table).await?;
    }
    Ok(())
}

async fn fetch(client: &Client, folder: &Path, partial: &Path, compact: bool) -> Outcome<()> {
    let target = folder.join("data.mdb");
    let failed = |path: &Path, operation: &'static str| {
        let path = path.to_owned();
        move |error: std::io::Error| Failure::io(&path, operation, &error)
    };
    if target.exists() {
        let exists = std::io::ErrorKind::AlreadyExists.into();
        return Err(failed(&target, "back up")(exists));
    }
    if !folder.is_dir() {
        fs::create_dir(folder).map_err(failed(folder, "create the folder"))?;
    }
    // A process that was killed left it. Its permissions may allow other users to read it.
    let _ = fs::remove_file(partial);
    let mut options = File::options();
    let created = options.write(true).create_new(true).mode(0o600).open(partial);
    let mut file = created.map_err(failed(partial, "create"))?;
    let mut parts = client.backup(compact).await?;
    while let Some(part) = parts.next().await {
        file.write_all(&part?).map_err(failed(partial, "write"))?;
    }
    file.sync_all().map_err(failed(partial, "sync"))?;
    fs::rename(partial, &target).map_err(failed(&target, "rename"))?;
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(failed(folder, "sync"))
}

impl From<nuthatch_rpc::Found> for Entry {
    fn from(found: nuthatch_rpc::Found) -> Self {
        let expires_at = unix_seconds(found.expires_at_ms);
        Self { value: found.value.to_vec(), version: found.version, expires_at }
    }
}
