//! The threads that pass rows to the writer of a snapshot.
//!
//! Threads of the sources make entries of rows and collect them in batches. The calling thread
//! appends full batches to the writer. The number of batches between them is bounded.

mod absent;
mod batches;
mod kept;
mod row_place;
mod sampler;

pub(crate) use absent::{AbsentKeys, FoundAbsent};
pub(crate) use kept::{Counters, Keep, Kept};
pub(crate) use row_place::RowPlace;
pub(crate) use sampler::SampledRow;

use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::Source;
use crate::sources::{MakeReceiver, RowReceiver, Session, Stop};
use absent::KeySet;
use batches::{BatchReceiver, Filled};
use nuthatch_snapshot::Writer;
use sampler::Sampler;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Approximate memory of a thread that reads a source, in bytes.
pub(crate) const READER_MEMORY: usize = batches::MAX_HELD_BYTES + (6 << 20);
/// Number of full batches that wait for the writer, for each thread.
const BATCHES_PER_READER: usize = 2;

/// Reads a source, or a query of it, and appends its entries to the writer. `report` is called
/// after each batch.
///
/// # Errors
///
/// Returns [`Error::Source`] if the source cannot be read or has a row that cannot be stored,
/// [`Error::Snapshot`] if the writer fails, and [`Error::Interrupted`] after an interruption.
pub(crate) fn append(
    (session, source, query): (&mut dyn Session, &Source, Option<&str>),
    (writer, keep): (&mut Writer, Keep<'_>),
    (counters, interruption): (&Counters, &Interruption),
    mut report: impl FnMut(),
) -> Result<Kept> {
    let (filled, batches) = sync_channel::<Filled>(source.readers * BATCHES_PER_READER);
    let (template, kept) = (writer.batch(), Mutex::new(Kept::default()));
    let make = {
        let kept = &kept;
        move || -> Box<dyn RowReceiver + '_> {
            Box::new(BatchReceiver {
                place: RowPlace::new(source.name()),
                number: source.number,
                entries: &source.entries,
                mapper: None,
                empty: template.another(),
                batch: template.another(),
                held: Vec::new(),
                can_drop_part: false,
                filled: filled.clone(),
                counters,
                interruption,
                sampler: Sampler::new(keep.sample),
                absent: keep.absent.map(|all| (all, KeySet::default())),
                kept,
                rows: 0,
                part_start: 0,
                counted_rows: 0,
            })
        }
    };
    let (read, appended) = thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let make: Box<MakeReceiver<'_>> = Box::new(make);
            session.read(source, query, &*make)
        });
        let mut appended = Ok(());
        for Filled { batch, entries } in &batches {
            appended = writer.append(batch);
            if appended.is_err() {
                break;
            }
            counters.entries.fetch_add(entries, Ordering::Relaxed);
            report();
        }
        // Senders fail from now on, so that the threads end.
        drop(batches);
        (reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), appended)
    });
    appended?;
    match read {
        Ok(()) => {}
        Err(Stop::Fault(error)) => return Err(error),
        Err(Stop::Enough) if interruption.is_set() => return Err(Error::Interrupted),
        Err(Stop::Enough) => return Err(Error::System("a source ended early".to_owned())),
    }
    let mut kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(all) = keep.absent {
        all.lock().unwrap_or_else(PoisonError::into_inner).add(&mut kept.absent)?;
    }
    Ok(kept)
}
