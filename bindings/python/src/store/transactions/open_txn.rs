//! Lookups and scans within a transaction of either kind of store.

use super::local_read::LocalReadTxn;
use super::remote_txn::RemoteTxn;
use super::txn_view::TxnView;
use super::write_thread::LocalWriteTxn;
use crate::convert::Value;
use crate::failure::{Failure, Outcome};
use crate::runtime::Work;
use crate::store::engine::{
    Local, Remote, ScanOptions, StoreUser, TableRef, ensure_table, entry, values,
};
use crate::store::results::Entry;
use crate::store::rows::{CopiedRows, RowData};
use nuthatch_store::{Range, Read};
use std::future::Future;
use std::sync::Arc;

/// An open transaction.
#[derive(Clone)]
pub(crate) enum OpenTxn {
    LocalRead(Arc<LocalReadTxn>),
    LocalWrite(LocalWriteTxn),
    Remote(Arc<Remote>, Arc<RemoteTxn>),
}

impl OpenTxn {
    /// Begins a read transaction of a store in this process.
    pub(crate) fn local_read(local: &Local, table: &TableRef) -> Outcome<Self> {
        LocalReadTxn::begin(local, table).map(Self::LocalRead)
    }

    /// Begins a transaction of a server.
    pub(crate) async fn remote(remote: Arc<Remote>, table: &TableRef) -> Outcome<Self> {
        let client = remote.client()?;
        ensure_table(&client, table).await?;
        let txn = RemoteTxn::new(client.txn().await?);
        Ok(Self::Remote(remote, Arc::new(txn)))
    }

    /// Ends the transaction without a commit.
    pub(crate) fn end(&self) {
        match self {
            Self::LocalRead(txn) => txn.release(),
            Self::LocalWrite(writing) => writing.end(),
            Self::Remote(_, remote_txn) => remote_txn.end(),
        }
    }

    /// Returns work that reads in a transaction of this process; `None` for a transaction of a
    /// server.
    fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&TxnView<'_>) -> Outcome<T> + Send + 'static,
    ) -> Option<Work<T>> {
        match self {
            Self::LocalRead(txn) => {
                let txn = Arc::clone(txn);
                Some(Work::blocking(move || txn.with(job)))
            }
            Self::LocalWrite(writing) => Some(writing.read(job)),
            Self::Remote(..) => None,
        }
    }

    /// Returns work that calls a transaction of a server.
    fn call<T, F>(
        &self,
        table: &TableRef,
        call: impl FnOnce(Arc<RemoteTxn>, TableRef) -> F + Send + 'static,
    ) -> Work<T>
    where
        T: Send + 'static,
        F: Future<Output = Outcome<T>> + Send,
    {
        let Self::Remote(remote, remote_txn) = self else {
            return Work::Done(Err(Failure::lost()));
        };
        let (remote, remote_txn, table) =
            (Arc::clone(remote), Arc::clone(remote_txn), table.clone());
        Work::awaited(async move {
            ensure_table(&remote.client()?, &table).await?;
            call(remote_txn, table).await
        })
    }

    pub(crate) fn get(&self, table: &TableRef, key: Vec<u8>) -> Work<Option<Value>> {
        let (named, options) = (table.clone(), key.clone());
        let job = move |txn: &TxnView<'_>| {
            let found = txn.get(&named.opened()?, &options)?;
            Ok(found.map(|value| Value::Owned(value.to_vec())))
        };
        self.read(job).unwrap_or_else(|| {
            self.call(table, |remote_txn, table| async move {
                let found = remote_txn.with(async |txn| txn.get(table.name(), &key).await).await?;
                Ok(found.map(Value::Shared))
            })
        })
    }

    pub(crate) fn get_many(
        &self,
        table: &TableRef,
        keys: Vec<Vec<u8>>,
    ) -> Work<Vec<Option<Value>>> {
        let (named, options) = (table.clone(), keys.clone());
        let job = move |txn: &TxnView<'_>| values(txn, &named.opened()?, &options);
        self.read(job).unwrap_or_else(|| {
            self.call(table, |remote_txn, table| async move {
                let found =
                    remote_txn.with(async |txn| txn.get_many(table.name(), &keys).await).await?;
                Ok(found.into_iter().map(|value| value.map(Value::Shared)).collect())
            })
        })
    }

    pub(crate) fn entry(&self, table: &TableRef, key: Vec<u8>) -> Work<Option<Entry>> {
        let (named, options) = (table.clone(), key.clone());
        let job = move |txn: &TxnView<'_>| entry(txn, &named.opened()?, &options);
        self.read(job).unwrap_or_else(|| {
            self.call(table, |remote_txn, table| async move {
                let found =
                    remote_txn.with(async |txn| txn.entry(table.name(), &key).await).await?;
                Ok(found.map(Entry::from))
            })
        })
    }

    pub(crate) fn count(&self, table: &TableRef, range: Range) -> Work<u64> {
        let (named, options) = (table.clone(), range.clone());
        let job = move |txn: &TxnView<'_>| Ok(txn.count(&named.opened()?, &options)?);
        self.read(job).unwrap_or_else(|| {
            self.call(table, |remote_txn, table| async move {
                // Transactions of a server have no call that counts: this scans the keys.
                let (mut left, mut count) = (nuthatch_rpc::Scan::new(range).keys_only(), 0);
                loop {
                    let rows =
                        remote_txn.with(async |txn| txn.scan(table.name(), &left).await).await?;
                    if rows.is_empty() {
                        return Ok(count);
                    }
                    count += rows.len() as u64;
                    left = left.after(&rows);
                }
            })
        })
    }

    /// Returns the first rows of a scan; none if the range is empty.
    pub(crate) fn page(&self, table: &TableRef, options: ScanOptions) -> Work<RowData> {
        let (named, here) = (table.clone(), options.clone());
        let job = move |txn: &TxnView<'_>| {
            let rows = CopiedRows::read(txn, &named.opened()?, &here)?;
            Ok(RowData::Copied(Arc::new(rows.with_position(0, txn.sequence()?))))
        };
        self.read(job).unwrap_or_else(|| {
            self.call(table, move |remote_txn, table| async move {
                let scan = options.remote_scan();
                let rows = remote_txn.with(async |txn| txn.scan(table.name(), &scan).await).await?;
                Ok(RowData::Received(Arc::new(rows)))
            })
        })
    }

    /// Returns the sequence number of the last change that the transaction sees.
    pub(crate) fn sequence(&self) -> Work<u64> {
        self.read(|txn| Ok(txn.sequence()?)).unwrap_or_else(|| {
            // Each response to a scan includes the number, even if it has no rows.
            self.call(&TableRef::new(String::new(), None), |remote_txn, _| async move {
                let scan = nuthatch_rpc::Scan::all().keys_only().limit(1);
                Ok(remote_txn.with(async |txn| txn.scan("", &scan).await).await?.sequence())
            })
        })
    }
}
