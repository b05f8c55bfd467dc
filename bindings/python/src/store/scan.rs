//! Python classes for scans: iterators of batches, blocking and asynchronous.

use super::bounds::Wanted;
use super::held::Held;
use super::local::Local;
use super::remote::{Remote, ready};
use super::rows::{Cell, CopiedRows, Kept, RowBatch};
use super::slot::{Slot, Taken};
use super::tables::TableRef;
use super::txn::State;
use crate::failure::{Failure, Outcome};
use crate::undelivered::Undelivered;
use crate::work::{Face, Work};
use futures_core::Stream;
use nuthatch_store::{Batches, Parallel, ParallelRows, RowStream};
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A row that a thread of a parallel scan copied: the key and the value, and the offset of the
/// value.
type Joined = (Box<[u8]>, u32);

/// The source of the rows of a scan. It is opened when the first batch is read.
pub(crate) enum Source {
    /// A store in this process; the calling thread reads.
    Unopened(Arc<Local>, TableRef, Box<Wanted>),
    Opened(Box<Batches>),
    /// A store in this process; threads of the store read.
    Unstarted(Arc<Local>, TableRef, Box<Wanted>),
    Started(RowStream),
    /// A server.
    Unasked(Arc<Remote>, TableRef, Box<Wanted>),
    Asked(Box<nuthatch_rpc::RowStream>),
    /// A transaction.
    Within(Arc<State>, TableRef, Box<Wanted>),
    /// A store in this process; several threads read.
    Unshared(Arc<Local>, TableRef, Box<Wanted>, Parallel),
    Shared(ParallelRows<Joined>),
}

impl Source {
    /// Returns whether reads block the thread.
    fn is_blocking(&self) -> bool {
        use Source::{Opened, Shared, Unopened, Unshared};
        matches!(self, Unopened(..) | Opened(_) | Unshared(..) | Shared(_))
    }

    /// Reads the next rows of a blocking source.
    fn read(&mut self) -> Outcome<Option<Kept>> {
        match self {
            Self::Unopened(local, table, wanted) => {
                let store = local.store()?;
                let table = table.open(&store)?;
                *self = Self::Opened(Box::new(store.batches(&table, &wanted.scan())));
                self.read()
            }
            Self::Opened(batches) => Ok(batches.next_batch()?.map(lent)),
            Self::Unshared(local, table, wanted, parallel) => {
                let store = local.store()?;
                let table = table.open(&store)?;
                let join = |(key, value): (&[u8], &[u8])| {
                    Some(([key, value].concat().into_boxed_slice(), key.len() as u32))
                };
                let rows = store.scan_parallel(&table, &wanted.scan(), parallel, join)?;
                *self = Self::Shared(rows);
                self.read()
            }
            Self::Shared(rows) => rows.next().transpose()?.map_or(Ok(None), |joined| {
                let mut rows = CopiedRows::default();
                for (row, key_len) in &joined {
                    let (key, value) = row.split_at(*key_len as usize);
                    rows.push(key, value);
                }
                Ok(Some(Kept::Copied(Arc::new(rows))))
            }),
            _ => Err(Failure::lost()),
        }
    }

    /// Reads the next rows of an asynchronous source.
    async fn next(&mut self) -> Outcome<Option<Kept>> {
        loop {
            match self {
                Self::Unstarted(local, table, wanted) => {
                    let (local, table, scan) = (Arc::clone(local), table.clone(), wanted.scan());
                    let start = Work::blocking(move || {
                        let store = local.store()?;
                        Ok(store.stream(&table.open(&store)?, &scan))
                    });
                    *self = Self::Started(start.outcome().await?);
                }
                Self::Started(stream) => {
                    let next = poll_fn(|context| Pin::new(&mut *stream).poll_next(context));
                    return Ok(next.await.transpose()?.map(lent));
                }
                Self::Unasked(remote, table, wanted) => {
                    ready(&remote.client()?, table).await?;
                    *self = Self::Asked(Box::new(remote.scan(table, wanted)?));
                }
                Self::Asked(stream) => {
                    let rows = stream.next().await.transpose()?;
                    return Ok(rows.map(|rows| Kept::Sent(Arc::new(rows))));
                }
                Self::Within(state, table, wanted) => {
                    if wanted.limit == Some(0) {
                        return Ok(None);
                    }
                    let left = (**wanted).clone();
                    let page = state.after_writes(|txn| txn.page(table, left)).outcome().await?;
                    let Some((last, _)) = page.len().checked_sub(1).and_then(|at| page.row(at))
                    else {
                        return Ok(None);
                    };
                    **wanted = (**wanted).clone().after(page.len(), last);
                    return Ok(Some(page));
                }
                _ => return Err(Failure::lost()),
            }
        }
    }
}

fn lent(rows: nuthatch_store::RowBatch) -> Kept {
    Kept::Lent(Arc::new(rows))
}

/// The state of a scan in Python.
pub(crate) struct Course {
    slot: Arc<Slot<Source>>,
    /// The store whose memory map batches refer to.
    local: Option<Arc<Local>>,
    /// Batches that refer to the memory map.
    lent: Mutex<Vec<Weak<Cell>>>,
    exhausted: AtomicBool,
}

impl Course {
    pub(crate) fn new(local: Option<Arc<Local>>, source: Source) -> Arc<Self> {
        let slot = Arc::new(Slot::new("scan", source));
        let (lent, exhausted) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let course = Arc::new(Self { slot, local, lent, exhausted });
        if let Some(local) = &course.local {
            let holder: Weak<dyn Held> = Arc::downgrade(&(Arc::clone(&course) as Arc<dyn Held>));
            local.hold(holder);
        }
        course
    }

    /// Returns work that reads the next batch. If its result is not delivered, the scan ends, since
    /// the batch would be missing.
    fn next(self: &Arc<Self>) -> Work<Undelivered<Option<Arc<Cell>>>> {
        let course = Arc::clone(self);
        self.step().map(|next| {
            Undelivered::new(next, move |lost| {
                drop(lost);
                course.close();
            })
        })
    }

    fn step(self: &Arc<Self>) -> Work<Option<Arc<Cell>>> {
        let mut taken = match self.slot.take() {
            Ok(Some(taken)) => taken,
            Ok(None) => return Work::Done(Ok(None)),
            Err(failure) => return Work::Done(Err(failure)),
        };
        let mut step = Step(Some(Arc::clone(self)));
        if taken.get().is_ok_and(|source| source.is_blocking()) {
            return Work::blocking(move || {
                let read = taken.get().and_then(Source::read);
                step.end(taken, read)
            });
        }
        Work::awaited(async move {
            let read = match taken.get() {
                Ok(source) => source.next().await,
                Err(failure) => Err(failure),
            };
            step.end(taken, read)
        })
    }

    /// Ends the scan and its transaction.
    fn close(&self) {
        self.slot.end(None);
        self.take_back();
    }

    /// Copies the remaining batches, so that they do not keep the transaction open.
    fn take_back(&self) {
        let lent = std::mem::take(&mut *self.lent.lock().unwrap_or_else(PoisonError::into_inner));
        lent.iter().filter_map(Weak::upgrade).for_each(|cell| cell.release());
    }

    fn lend(&self, local: &Local, cell: &Arc<Cell>) {
        let holder: Arc<dyn Held> = Arc::clone(cell) as Arc<dyn Held>;
        local.hold(Arc::downgrade(&holder));
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.retain(|cell| cell.strong_count() > 0);
        lent.push(Arc::downgrade(cell));
    }
}

impl Held for Course {
    fn release(&self) {
        self.slot.end(Some(Failure::closed("store")));
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        if !*self.exhausted.get_mut() {
            self.take_back();
        }
    }
}

/// A read in progress. If it is dropped before its end, the scan ends.
struct Step(Option<Arc<Course>>);

impl Step {
    fn end(
        &mut self,
        taken: Taken<Source>,
        read: Outcome<Option<Kept>>,
    ) -> Outcome<Option<Arc<Cell>>> {
        let Some(course) = self.0.take() else { return Err(Failure::lost()) };
        let Some(kept) = read? else {
            course.exhausted.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        let lent = matches!(kept, Kept::Lent(_));
        let cell = Cell::new(kept);
        if let (true, Some(local)) = (lent, &course.local) {
            course.lend(local, &cell);
        }
        taken.give_back();
        Ok(Some(cell))
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(course) = self.0.take() {
            course.take_back();
        }
    }
}

/// Methods that all scans have, blocking and asynchronous.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyScan {
    course: Arc<Course>,
    face: Face,
}

/// An iterator of row batches. It reads only the batches that are requested. Its read transaction
/// begins with the first batch. It ends with the last batch, or when the scan is closed or dropped.
#[pyclass(frozen, extends = AnyScan, module = "nuthatch")]
pub(crate) struct Scan;

/// An asynchronous iterator of row batches. It reads a few batches ahead at most. Its read
/// transaction begins with the first batch. It ends with the last batch, or when the scan is
/// closed, dropped or cancelled.
#[pyclass(frozen, extends = AnyScan, module = "nuthatch")]
pub(crate) struct AsyncScan;

impl AnyScan {
    /// Creates the Python object of a scan.
    pub(crate) fn make(py: Python<'_>, course: Arc<Course>, face: Face) -> PyResult<Py<PyAny>> {
        let base = PyClassInitializer::from(Self { course, face });
        Ok(match face {
            Face::Sync => Py::new(py, base.add_subclass(Scan))?.into_any(),
            Face::Async => Py::new(py, base.add_subclass(AsyncScan))?.into_any(),
        })
    }
}

#[pymethods]
impl AnyScan {
    /// Ends the scan and its read transaction at once. Batches that the caller still has are
    /// copied.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.course.close());
    }
}

#[pymethods]
impl Scan {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<RowBatch>> {
        let py = slf.py();
        let next = slf.as_super().get().course.next().wait(py)?;
        Ok(next.deliver().flatten().map(RowBatch::new))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) {
        slf.as_super().get().close(slf.py());
    }
}

#[pymethods]
impl AsyncScan {
    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.course.next().answer_with(slf.py(), base.face, |py, next| {
            match next.deliver().flatten() {
                Some(cell) => Ok(Py::new(py, RowBatch::new(cell))?.into_any()),
                None => Err(PyStopAsyncIteration::new_err(())),
            }
        })
    }

    fn __aenter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let (py, this) = (slf.py(), slf.unbind());
        Work::Done(Ok(())).answer_with(py, Face::Async, |_, ()| Ok(this.into_any()))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.close(slf.py());
        Work::Done(Ok(())).answer(slf.py(), base.face)
    }
}
