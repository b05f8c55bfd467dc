//! The state of scans in Python: a source of batches, and the batches that refer to the memory map.

use super::engine::{Engine, Local, Remote, ScanOptions, StoreUser, TableRef, ensure_table};
use super::rows::{CopiedRows, RowData, SharedRows};
use super::source_slot::{SourceGuard, SourceSlot};
use super::transactions::TxnState;
use crate::failure::{Failure, Outcome};
use crate::runtime::{CallMode, Undelivered, Work};
use futures_core::Stream;
use nuthatch_store::{Batches, Parallel, ParallelRows, RowStream};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A row that a thread of a parallel scan copied: the key and the value, and the offset of the
/// value.
type ParallelRow = (Box<[u8]>, u32);

/// The source of the rows of a scan. It is opened when the first batch is read.
pub(crate) enum Source {
    /// A store in this process; the calling thread reads.
    LocalUnopened(Arc<Local>, TableRef, Box<ScanOptions>),
    Local(Box<Batches>),
    /// A store in this process; threads of the store read.
    StreamUnopened(Arc<Local>, TableRef, Box<ScanOptions>),
    Stream(RowStream),
    /// A server.
    RemoteUnopened(Arc<Remote>, TableRef, Box<ScanOptions>),
    Remote(Box<nuthatch_rpc::RowStream>),
    /// A transaction.
    Transaction(Arc<TxnState>, TableRef, Box<ScanOptions>),
    /// A store in this process; several threads read.
    ParallelUnopened(Arc<Local>, TableRef, Box<ScanOptions>, Parallel),
    Parallel(ParallelRows<ParallelRow>),
}

impl Source {
    /// Returns the source of a scan of a table.
    pub(crate) fn new(
        engine: &Engine,
        mode: CallMode,
        table: &TableRef,
        options: ScanOptions,
    ) -> Self {
        let (table, options) = (table.clone(), Box::new(options));
        match (engine, mode) {
            (Engine::Local(local), CallMode::Sync) => {
                Self::LocalUnopened(Arc::clone(local), table, options)
            }
            (Engine::Local(local), CallMode::Async) => {
                Self::StreamUnopened(Arc::clone(local), table, options)
            }
            (Engine::Remote(remote), _) => Self::RemoteUnopened(Arc::clone(remote), table, options),
        }
    }

    /// Returns whether reads block the thread.
    fn is_blocking(&self) -> bool {
        use Source::{Local, LocalUnopened, Parallel, ParallelUnopened};
        matches!(self, LocalUnopened(..) | Local(_) | ParallelUnopened(..) | Parallel(_))
    }

    /// Reads the next rows of a blocking source.
    fn read(&mut self) -> Outcome<Option<RowData>> {
        match self {
            Self::LocalUnopened(local, table, options) => {
                let store = local.store()?;
                let table = table.open(&store)?;
                *self = Self::Local(Box::new(store.batches(&table, &options.scan())));
                self.read()
            }
            Self::Local(batches) => Ok(batches.next_batch()?.map(mapped)),
            Self::ParallelUnopened(local, table, options, parallel) => {
                let store = local.store()?;
                let table = table.open(&store)?;
                let join = |(key, value): (&[u8], &[u8])| {
                    Some(([key, value].concat().into_boxed_slice(), key.len() as u32))
                };
                let rows = store.scan_parallel(&table, &options.scan(), parallel, join)?;
                *self = Self::Parallel(rows);
                self.read()
            }
            Self::Parallel(rows) => rows.next().transpose()?.map_or(Ok(None), |copied| {
                let mut rows = CopiedRows::default();
                for (row, key_len) in &copied {
                    let (key, value) = row.split_at(*key_len as usize);
                    rows.push(key, value);
                }
                Ok(Some(RowData::Copied(Arc::new(rows))))
            }),
            _ => Err(Failure::lost()),
        }
    }

    /// Reads the next rows of an asynchronous source.
    async fn next(&mut self) -> Outcome<Option<RowData>> {
        loop {
            match self {
                Self::StreamUnopened(local, table, options) => {
                    let (local, table, scan) = (Arc::clone(local), table.clone(), options.scan());
                    let start = Work::blocking(move || {
                        let store = local.store()?;
                        Ok(store.stream(&table.open(&store)?, &scan))
                    });
                    *self = Self::Stream(start.outcome().await?);
                }
                Self::Stream(stream) => {
                    let next = poll_fn(|context| Pin::new(&mut *stream).poll_next(context));
                    return Ok(next.await.transpose()?.map(mapped));
                }
                Self::RemoteUnopened(remote, table, options) => {
                    ensure_table(&remote.client()?, table).await?;
                    *self = Self::Remote(Box::new(remote.scan(table, options)?));
                }
                Self::Remote(stream) => {
                    let rows = stream.next().await.transpose()?;
                    return Ok(rows.map(|rows| RowData::Received(Arc::new(rows))));
                }
                Self::Transaction(state, table, options) => {
                    if options.limit == Some(0) {
                        return Ok(None);
                    }
                    let left = (**options).clone();
                    let page = state.after_writes(|txn| txn.page(table, left)).outcome().await?;
                    let Some((last, _)) = page.len().checked_sub(1).and_then(|at| page.row(at))
                    else {
                        return Ok(None);
                    };
                    **options = (**options).clone().after(page.len(), last);
                    return Ok(Some(page));
                }
                _ => return Err(Failure::lost()),
            }
        }
    }
}

fn mapped(rows: nuthatch_store::RowBatch) -> RowData {
    RowData::Mapped(Arc::new(rows))
}

/// The state of a scan in Python.
pub(crate) struct ScanState {
    slot: Arc<SourceSlot<Source>>,
    /// The store whose memory map batches refer to.
    local: Option<Arc<Local>>,
    /// Batches that refer to the memory map.
    mapped: Mutex<Vec<Weak<SharedRows>>>,
    exhausted: AtomicBool,
}

impl ScanState {
    pub(crate) fn new(local: Option<Arc<Local>>, source: Source) -> Arc<Self> {
        let slot = Arc::new(SourceSlot::new("scan", source));
        let (mapped, exhausted) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let state = Arc::new(Self { slot, local, mapped, exhausted });
        if let Some(local) = &state.local {
            let user: Weak<dyn StoreUser> =
                Arc::downgrade(&(Arc::clone(&state) as Arc<dyn StoreUser>));
            local.add_user(user);
        }
        state
    }

    /// Returns work that reads the next batch. If its result is not delivered, the scan ends, since
    /// the batch would be missing.
    pub(crate) fn next(self: &Arc<Self>) -> Work<Undelivered<Option<Arc<SharedRows>>>> {
        let state = Arc::clone(self);
        self.step().map(|next| {
            Undelivered::new(next, move |lost| {
                drop(lost);
                state.close();
            })
        })
    }

    fn step(self: &Arc<Self>) -> Work<Option<Arc<SharedRows>>> {
        let mut source = match self.slot.take() {
            Ok(Some(source)) => source,
            Ok(None) => return Work::Done(Ok(None)),
            Err(failure) => return Work::Done(Err(failure)),
        };
        let mut step = BatchRead(Some(Arc::clone(self)));
        if source.get().is_ok_and(|source| source.is_blocking()) {
            return Work::blocking(move || {
                let read = source.get().and_then(Source::read);
                step.end(source, read)
            });
        }
        Work::awaited(async move {
            let read = match source.get() {
                Ok(source) => source.next().await,
                Err(failure) => Err(failure),
            };
            step.end(source, read)
        })
    }

    /// Ends the scan and its transaction.
    pub(crate) fn close(&self) {
        self.slot.end(None);
        self.copy_mapped();
    }

    /// Copies the remaining batches, so that they do not keep the transaction open.
    fn copy_mapped(&self) {
        let mapped =
            std::mem::take(&mut *self.mapped.lock().unwrap_or_else(PoisonError::into_inner));
        mapped.iter().filter_map(Weak::upgrade).for_each(|shared| shared.release());
    }

    fn register_mapped(&self, local: &Local, shared: &Arc<SharedRows>) {
        let user: Arc<dyn StoreUser> = Arc::clone(shared) as Arc<dyn StoreUser>;
        local.add_user(Arc::downgrade(&user));
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.retain(|shared| shared.strong_count() > 0);
        mapped.push(Arc::downgrade(shared));
    }
}

impl StoreUser for ScanState {
    fn release(&self) {
        self.slot.end(Some(Failure::closed("store")));
    }
}

impl Drop for ScanState {
    fn drop(&mut self) {
        if !*self.exhausted.get_mut() {
            self.copy_mapped();
        }
    }
}

/// A read in progress. If it is dropped before its end, the scan ends.
struct BatchRead(Option<Arc<ScanState>>);

impl BatchRead {
    fn end(
        &mut self,
        source: SourceGuard<Source>,
        read: Outcome<Option<RowData>>,
    ) -> Outcome<Option<Arc<SharedRows>>> {
        let Some(state) = self.0.take() else { return Err(Failure::lost()) };
        let Some(data) = read? else {
            state.exhausted.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        let mapped = matches!(data, RowData::Mapped(_));
        let shared = SharedRows::new(data);
        if let (true, Some(local)) = (mapped, &state.local) {
            state.register_mapped(local, &shared);
        }
        source.give_back();
        Ok(Some(shared))
    }
}

impl Drop for BatchRead {
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            state.copy_mapped();
        }
    }
}
