//! Scans by the batch.

use super::open::OpenTable;
use super::types::{
    nuthatch_store_range, nuthatch_store_row, nuthatch_store_scan, nuthatch_store_scan_options,
    nuthatch_store_table, range_of, scan_of,
};
use crate::error::{Failure, nuthatch_error};
use crate::handles;
use crate::memory::{Caller, call};
use std::sync::{Arc, Mutex, PoisonError};
use store_engine::{Batches, Parallel, RowBatch};

/// What is behind the handle of a scan.
pub(crate) struct OpenScan {
    reading: Mutex<Reading>,
    _guest: Option<Arc<()>>,
}

struct Reading {
    batches: Batches,
    /// The rows that C has.
    batch: Option<RowBatch>,
}

impl OpenScan {
    fn new(table: &OpenTable, batches: Batches) -> Self {
        let reading = Mutex::new(Reading { batches, batch: None });
        Self { reading, _guest: table.guests.upgrade() }
    }
}

/// Opens a scan, which begins with the first batch that is asked for, in a transaction of its own.
/// `options` may be null, for all rows. Answers its handle through `scan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_open_scan(
    table: nuthatch_store_table,
    options: *const nuthatch_store_scan_options,
    scan: *mut nuthatch_store_scan,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let mut out = caller.out("scan", scan)?;
        let options = scan_of(caller, options)?;
        let table = OpenTable::find(table)?;
        let batches = table.store.batches(&table.table, &options);
        out.put(handles::hold(OpenScan::new(&table, batches)));
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// The next rows of a scan: where the first lies through `rows`, and how many follow one another
/// there through `count`, which is 0 after the last. They lie in the store itself, and can be read
/// until the next call for this scan, or until it is closed. Closing the store alone takes nothing
/// away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_scan_next(
    scan: nuthatch_store_scan,
    rows: *mut *const nuthatch_store_row,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let (mut rows, mut count) = (caller.out("rows", rows)?, caller.out("count", count)?);
        let scan = handles::find::<OpenScan>(scan)?;
        let mut reading = scan.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // The batch before goes first: the last one ends the transaction.
        reading.batch = None;
        reading.batch = reading.batches.next_batch()?;
        let raw = reading.batch.as_ref().map_or(&[][..], RowBatch::raw);
        rows.put(raw.as_ptr().cast());
        count.put(raw.len());
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Ends a scan and its transaction, at once. Nothing that it lent may be read from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_close_scan(
    scan: nuthatch_store_scan,
    error: *mut nuthatch_error,
) -> i32 {
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, |_| handles::close::<OpenScan>(scan).map(drop)) }
}

/// Opens the parts of a scan for `threads` threads, from 1 to 256, all of which see the same state
/// of the store. The parts are `ranges`, where there are some, and cut by the store otherwise. Each
/// is a scan, which one thread reads at a time and which is closed like any other. How many there
/// are is answered through `count`, and their handles, in the order of the whole, in `scans`; where
/// `capacity` has no room for all of them none is opened. There are at most 16 for each thread, or
/// one for each range. A limit is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_open_parts(
    table: nuthatch_store_table,
    options: *const nuthatch_store_scan_options,
    threads: u32,
    ranges: *const nuthatch_store_range,
    range_count: usize,
    scans: *mut nuthatch_store_scan,
    capacity: usize,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let mut out = caller.out("count", count)?;
        let room = caller.room("scans", scans, capacity)?;
        if !(1..=256).contains(&threads) {
            return Err(Failure::argument("threads", "from 1 to 256", threads));
        }
        let options = scan_of(caller, options)?;
        let mut parallel = Parallel::split(threads as usize);
        if range_count > 0 {
            let ranges = caller.list("ranges", ranges, range_count)?;
            let ranges = ranges.iter().map(|range| range_of(caller, range));
            parallel = parallel.ranges(ranges.collect::<Result<_, _>>()?);
        }
        let table = OpenTable::find(table)?;
        let parts = table.store.parallel_batches(&table.table, &options, &parallel)?;
        out.put(parts.len());
        if let Some(room) = room.get_mut(..parts.len()) {
            for (place, part) in room.iter_mut().zip(parts) {
                *place = handles::hold(OpenScan::new(&table, part));
            }
        }
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}
