//! Lookups and scans within a transaction of either kind of store.

use super::bounds::Wanted;
use super::figures::Entry;
use super::held::Held;
use super::local::{Local, entry, values};
use super::remote::{Remote, ready};
use super::rows::{CopiedRows, Kept};
use super::tables::TableRef;
use super::writing::Writing;
use crate::failure::{Failure, Outcome};
use crate::octets::Value;
use crate::work::Work;
use nuthatch_rpc::Txn;
use nuthatch_store::{Range, Read, ReadTxn, View};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The view of a transaction, for reads and writes, of a store in this process.
pub(crate) struct Viewed<'t>(pub(crate) View<'t>);

impl Read for Viewed<'_> {
    fn view(&self) -> View<'_> {
        self.0
    }
}

/// A read transaction of a store in this process, until it ends.
pub(crate) struct Snapshotted(Mutex<Option<ReadTxn<'static>>>);

impl Snapshotted {
    /// Runs `job` on the transaction; fails if it has ended.
    pub(crate) fn with<T>(&self, job: impl FnOnce(&Viewed<'_>) -> Outcome<T>) -> Outcome<T> {
        match &*self.lock() {
            Some(txn) => job(&Viewed(txn.view())),
            None => Err(Failure::closed("snapshot")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReadTxn<'static>>> {
        // A panic does not leave a read transaction in an invalid state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held for Snapshotted {
    fn release(&self) {
        let ended = self.lock().take();
        drop(ended);
    }
}

/// A transaction of a server, until it ends. It is taken out during a call. If the call is
/// cancelled, the transaction is dropped, since the next call would receive the response of the
/// cancelled one.
pub(crate) struct Asked(tokio::sync::Mutex<Option<Txn>>);

impl Asked {
    async fn with<T>(
        &self,
        ask: impl AsyncFnOnce(&mut Txn) -> Result<T, nuthatch_rpc::Error>,
    ) -> Outcome<T> {
        let mut place = self.0.lock().await;
        let mut txn = place.take().ok_or_else(|| Failure::closed("transaction"))?;
        let answer = ask(&mut txn).await?;
        *place = Some(txn);
        Ok(answer)
    }

    /// Takes the transaction, to commit it.
    pub(crate) async fn take(&self) -> Outcome<Txn> {
        self.0.lock().await.take().ok_or_else(|| Failure::closed("transaction"))
    }
}

/// An open transaction.
#[derive(Clone)]
pub(crate) enum Reading {
    Snapshot(Arc<Snapshotted>),
    Writing(Writing),
    Remote(Arc<Remote>, Arc<Asked>),
}

impl Reading {
    /// Begins a read transaction of a store in this process.
    pub(crate) fn snapshot(local: &Local, table: &TableRef) -> Outcome<Self> {
        let store = local.store()?;
        table.open(&store)?;
        let snapshot = Arc::new(Snapshotted(Mutex::new(Some(store.snapshot()?))));
        let holder: Arc<dyn Held> = Arc::clone(&snapshot) as Arc<dyn Held>;
        local.hold(Arc::downgrade(&holder));
        Ok(Self::Snapshot(snapshot))
    }

    /// Begins a transaction of a server.
    pub(crate) async fn remote(remote: Arc<Remote>, table: &TableRef) -> Outcome<Self> {
        let client = remote.client()?;
        ready(&client, table).await?;
        let txn = Asked(tokio::sync::Mutex::new(Some(client.txn().await?)));
        Ok(Self::Remote(remote, Arc::new(txn)))
    }

    /// Ends the transaction without a commit.
    pub(crate) fn end(&self) {
        match self {
            Self::Snapshot(snapshot) => snapshot.release(),
            Self::Writing(writing) => writing.end(),
            Self::Remote(_, asked) => {
                // A call in progress keeps the transaction until it has its response.
                if let Ok(mut txn) = asked.0.try_lock() {
                    txn.take();
                }
            }
        }
    }

    /// Returns work that reads in a transaction of this process; `None` for a transaction of a
    /// server.
    fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Viewed<'_>) -> Outcome<T> + Send + 'static,
    ) -> Option<Work<T>> {
        match self {
            Self::Snapshot(snapshot) => {
                let snapshot = Arc::clone(snapshot);
                Some(Work::blocking(move || snapshot.with(job)))
            }
            Self::Writing(writing) => Some(writing.read(job)),
            Self::Remote(..) => None,
        }
    }

    /// Returns work that calls a transaction of a server.
    fn ask<T, F>(
        &self,
        table: &TableRef,
        ask: impl FnOnce(Arc<Asked>, TableRef) -> F + Send + 'static,
    ) -> Work<T>
    where
        T: Send + 'static,
        F: Future<Output = Outcome<T>> + Send,
    {
        let Self::Remote(remote, asked) = self else { return Work::Done(Err(Failure::lost())) };
        let (remote, asked, table) = (Arc::clone(remote), Arc::clone(asked), table.clone());
        Work::awaited(async move {
            ready(&remote.client()?, &table).await?;
            ask(asked, table).await
        })
    }

    pub(crate) fn get(&self, table: &TableRef, key: Vec<u8>) -> Work<Option<Value>> {
        let (named, wanted) = (table.clone(), key.clone());
        let job = move |txn: &Viewed<'_>| {
            let found = txn.get(&named.opened()?, &wanted)?;
            Ok(found.map(|value| Value::Owned(value.to_vec())))
        };
        self.read(job).unwrap_or_else(|| {
            self.ask(table, |asked, table| async move {
                let found = asked.with(async |txn| txn.get(table.name(), &key).await).await?;
                Ok(found.map(Value::Shared))
            })
        })
    }

    pub(crate) fn get_many(
        &self,
        table: &TableRef,
        keys: Vec<Vec<u8>>,
    ) -> Work<Vec<Option<Value>>> {
        let (named, wanted) = (table.clone(), keys.clone());
        let job = move |txn: &Viewed<'_>| values(txn, &named.opened()?, &wanted);
        self.read(job).unwrap_or_else(|| {
            self.ask(table, |asked, table| async move {
                let found = asked.with(async |txn| txn.get_many(table.name(), &keys).await).await?;
                Ok(found.into_iter().map(|value| value.map(Value::Shared)).collect())
            })
        })
    }

    pub(crate) fn entry(&self, table: &TableRef, key: Vec<u8>) -> Work<Option<Entry>> {
        let (named, wanted) = (table.clone(), key.clone());
        let job = move |txn: &Viewed<'_>| entry(txn, &named.opened()?, &wanted);
        self.read(job).unwrap_or_else(|| {
            self.ask(table, |asked, table| async move {
                let found = asked.with(async |txn| txn.entry(table.name(), &key).await).await?;
                Ok(found.map(Entry::from))
            })
        })
    }

    pub(crate) fn count(&self, table: &TableRef, range: Range) -> Work<u64> {
        let (named, wanted) = (table.clone(), range.clone());
        let job = move |txn: &Viewed<'_>| Ok(txn.count(&named.opened()?, &wanted)?);
        self.read(job).unwrap_or_else(|| {
            self.ask(table, |asked, table| async move {
                // Transactions of a server have no call that counts: this scans the keys.
                let (mut left, mut count) = (nuthatch_rpc::Scan::new(range).keys_only(), 0);
                loop {
                    let rows = asked.with(async |txn| txn.scan(table.name(), &left).await).await?;
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
    pub(crate) fn page(&self, table: &TableRef, wanted: Wanted) -> Work<Kept> {
        let (named, here) = (table.clone(), wanted.clone());
        let job = move |txn: &Viewed<'_>| {
            let rows = CopiedRows::read(txn, &named.opened()?, &here)?;
            Ok(Kept::Copied(Arc::new(rows.seen_at(0, txn.sequence()?))))
        };
        self.read(job).unwrap_or_else(|| {
            self.ask(table, move |asked, table| async move {
                let scan = wanted.remote_scan();
                let rows = asked.with(async |txn| txn.scan(table.name(), &scan).await).await?;
                Ok(Kept::Sent(Arc::new(rows)))
            })
        })
    }

    /// Returns the sequence number of the last change that the transaction sees.
    pub(crate) fn sequence(&self) -> Work<u64> {
        self.read(|txn| Ok(txn.sequence()?)).unwrap_or_else(|| {
            // Each response to a scan includes the number, even if it has no rows.
            self.ask(&TableRef::new(String::new(), None), |asked, _| async move {
                let scan = nuthatch_rpc::Scan::all().keys_only().limit(1);
                Ok(asked.with(async |txn| txn.scan("", &scan).await).await?.sequence())
            })
        })
    }
}
