//! Scans, which are read in batches of rows.

use super::open::OpenTable;
use super::types::{
    nuthatch_store_range, nuthatch_store_row, nuthatch_store_scan, nuthatch_store_scan_options,
    nuthatch_store_table, range_of, scan_of,
};
use crate::error::{Failure, nuthatch_error};
use crate::handles::{self, HandleObject};
use crate::memory::export_body;
use std::sync::{Arc, Mutex, PoisonError};
use store_engine::{Batches, Parallel, RowBatch};

/// The object of a scan's handle.
pub(crate) struct OpenScan {
    reading: Mutex<Reading>,
    _guest: Option<Arc<()>>,
}

impl HandleObject for OpenScan {
    const KIND: &str = "a scan";
}

struct Reading {
    batches: Batches,
    /// The rows to which C has pointers.
    batch: Option<RowBatch>,
}

impl OpenScan {
    fn new(table: &OpenTable, batches: Batches) -> Self {
        let reading = Mutex::new(Reading { batches, batch: None });
        Self { reading, _guest: table.guests.upgrade() }
    }
}

/// Opens a scan. Its read transaction begins with the first call of `nuthatch_store_scan_next`.
/// `options` may be null: all rows. Returns the handle in `scan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_open_scan(
    table: nuthatch_store_table,
    options: *const nuthatch_store_scan_options,
    scan: *mut nuthatch_store_scan,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("scan", scan)?;
        let options = scan_of(caller, options)?;
        let table = OpenTable::find(table)?;
        let batches = table.store.batches(&table.table, &options);
        out.put(handles::create(OpenScan::new(&table, batches)));
        Ok(())
    })
}

/// Returns the next rows of a scan: a pointer to an array in `rows`, and its length in `count`,
/// which is 0 after the last row. Rows are not copied: the pointers refer to the store, and are
/// valid until the next call for this scan, or until the scan is closed. They stay valid if only
/// the store is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_scan_next(
    scan: nuthatch_store_scan,
    rows: *mut *const nuthatch_store_row,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let (mut rows, mut count) = (caller.out("rows", rows)?, caller.out("count", count)?);
        let scan = handles::find::<OpenScan>(scan)?;
        let mut reading = scan.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // The previous batch must be dropped first: the last batch ends the transaction.
        reading.batch = None;
        reading.batch = reading.batches.next_batch()?;
        let raw = reading.batch.as_ref().map_or(&[][..], RowBatch::raw);
        rows.put(raw.as_ptr().cast());
        count.put(raw.len());
        Ok(())
    })
}

/// Closes a scan and ends its read transaction. All pointers that it returned become invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_close_scan(
    scan: nuthatch_store_scan,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| handles::close::<OpenScan>(scan).map(drop))
}

/// Splits a scan into parts for `threads` threads, from 1 to 256. All parts see the same state of
/// the store. If `range_count` is not 0, there is one part for each of `ranges`; otherwise the
/// store chooses at most 16 parts for each thread. Each part is a scan: one thread at a time reads
/// it, and the caller closes it. Returns the number of parts in `count`, and their handles in
/// `scans`, in the order of the whole scan. If `capacity` is less than `count`, no part is opened.
/// A limit in `options` is an error.
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
    export_body!(error, |caller| {
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
                *place = handles::create(OpenScan::new(&table, part));
            }
        }
        Ok(())
    })
}
