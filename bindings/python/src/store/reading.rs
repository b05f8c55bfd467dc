//! Lookups and scans within a transaction, wherever it is.

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

/// What any transaction of a store in this process sees.
pub(crate) struct Viewed<'t>(pub(crate) View<'t>);

impl Read for Viewed<'_> {
    fn view(&self) -> View<'_> {
        self.0
    }
}

/// A snapshot of a store in this process, until it ends.
pub(crate) struct Snapshotted(Mutex<Option<ReadTxn<'static>>>);

impl Snapshotted {
    /// Reads in the transaction.
    pub(crate) fn with<T>(&self, job: impl FnOnce(&Viewed<'_>) -> Outcome<T>) -> Outcome<T> {
        match &*self.lock() {
            Some(txn) => job(&Viewed(txn.view())),
            None => Err(Failure::closed("snapshot")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReadTxn<'static>>> {
        // A transaction that reads is whole, whatever panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held for Snapshotted {
    fn release(&self) {
        let ended = self.lock().take();
        drop(ended);
    }
}

/// A transaction of a server, until it ends. It is taken out while it is asked: whoever gives up
/// before the answer is there leaves none, since the next one would get that answer.
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

    /// Ends it, to be committed.
    pub(crate) async fn take(&self) -> Outcome<Txn> {
        self.0.lock().await.take().ok_or_else(|| Failure::closed("transaction"))
    }
}

/// A transaction that can be read from.
#[derive(Clone)]
pub(crate) enum Reading {
    Snapshot(Arc<Snapshotted>),
    Writing(Writing),
    Remote(Arc<Remote>, Arc<Asked>),
}

impl Reading {
    /// A snapshot of a store in this process.
    pub(crate) fn snapshot(local: &Local, table: &TableRef) -> Outcome<Self> {
        let store = local.store()?;
        table.open(&store)?;
        let snapshot = Arc::new(Snapshotted(Mutex::new(Some(store.snapshot()?))));
        let holder: Arc<dyn Held> = Arc::clone(&snapshot) as Arc<dyn Held>;
        local.hold(Arc::downgrade(&holder));
        Ok(Self::Snapshot(snapshot))
    }

    /// A transaction of a server.
    pub(crate) async fn remote(remote: Arc<Remote>, table: &TableRef) -> Outcome<Self> {
        let client = remote.client()?;
        ready(&client, table).await?;
        let txn = Asked(tokio::sync::Mutex::new(Some(client.txn().await?)));
        Ok(Self::Remote(remote, Arc::new(txn)))
    }

    /// Ends it without a trace.
    pub(crate) fn end(&self) {
        match self {
            Self::Snapshot(snapshot) => snapshot.release(),
            Self::Writing(writing) => writing.end(),
            Self::Remote(_, asked) => {
                // Where it is being asked, whoever asks is told first.
                if let Ok(mut txn) = asked.0.try_lock() {
                    txn.take();
                }
            }
        }
    }

    /// Reads in a transaction of this process.
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

    /// Asks a transaction of a server.
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
                // A transaction of a server answers rows alone.
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

    /// The first rows of a scan; none where there are no more.
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

    /// The number of the last change that the transaction sees.
    pub(crate) fn sequence(&self) -> Work<u64> {
        self.read(|txn| Ok(txn.sequence()?)).unwrap_or_else(|| {
            // Rows of any table come with it, none among them.
            self.ask(&TableRef::new(String::new(), None), |asked, _| async move {
                let scan = nuthatch_rpc::Scan::all().keys_only().limit(1);
                Ok(asked.with(async |txn| txn.scan("", &scan).await).await?.sequence())
            })
        })
    }
}
