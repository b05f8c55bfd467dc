//! Nuthatch's ordered store, with every kind of scan and write.

use super::rows::{Bounds, Ordered, StoreRows, Sum};
use crate::Result;
use futures_core::Stream;
use nuthatch_store::{
    BatchOptions, BatchWriter, Options, Parallel, Range, Read, Scan, Store as Opened, Table,
};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// A Nuthatch store with one table.
#[derive(Debug)]
pub(super) struct Store {
    store: Opened,
    table: Table,
}

impl Store {
    /// Creates a store with these rows, appended in key order and synced.
    pub(super) fn load(rows: StoreRows, folder: &Path) -> Result<Self> {
        let store = Opened::open(folder, &Options::new())?;
        let table = store.table("rows")?;
        let mut txn = store.write()?;
        rows.each(|key, value| Ok(txn.append(&table, key, value)?))?;
        txn.commit()?;
        Ok(Self { store, table })
    }
}

impl Ordered for Store {
    fn scan(&self, bounds: Option<Bounds<'_>>) -> Result<Sum> {
        let range = match bounds {
            Some((from, before)) => Range::all().from(from).before(before),
            None => Range::all(),
        };
        let txn = self.store.read()?;
        let mut sum = Sum::default();
        txn.scan(&self.table, &Scan::new(range))?.visit(|key, value| {
            sum.add(key, value);
            true
        })?;
        Ok(sum)
    }

    fn write(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.store.put(&self.table, key, value)?)
    }
}

impl Store {
    /// Scans all rows with an iterator.
    pub(super) fn scan_iterator(&self) -> Result<Sum> {
        let txn = self.store.read()?;
        let mut sum = Sum::default();
        for row in txn.scan(&self.table, &Scan::all())? {
            let (key, value) = row?;
            sum.add(key, value);
        }
        Ok(sum)
    }

    /// Scans all rows in batches, in this thread.
    pub(super) fn scan_batches(&self) -> Result<Sum> {
        let mut sum = Sum::default();
        for batch in self.store.batches(&self.table, &Scan::all()) {
            batch?.iter().for_each(|(key, value)| sum.add(key, value));
        }
        Ok(sum)
    }

    /// Scans all rows as a stream of batches, which another thread reads.
    pub(super) fn scan_stream(&self) -> Result<Sum> {
        let mut sum = Sum::default();
        let mut stream = self.store.stream(&self.table, &Scan::all());
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut stream).poll_next(&mut context) {
                Poll::Ready(Some(batch)) => {
                    batch?.iter().for_each(|(key, value)| sum.add(key, value));
                }
                Poll::Ready(None) => return Ok(sum),
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Scans all rows with `threads` threads.
    pub(super) fn scan_parallel(&self, threads: usize) -> Result<Sum> {
        let parallel = Parallel::split(threads);
        let add = |sum: &mut Sum, (key, value): (&[u8], &[u8])| sum.add(key, value);
        let scan = Scan::all();
        let parts = self.store.fold_parallel(&self.table, &scan, &parallel, Sum::default, add)?;
        Ok(parts.into_iter().fold(Sum::default(), Sum::and))
    }

    /// Returns the writer that groups the writes of concurrent tasks, and the table.
    pub(super) fn writer(&self) -> Result<(BatchWriter, Table)> {
        Ok((self.store.batch_writer(&BatchOptions::new())?, self.table.clone()))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
