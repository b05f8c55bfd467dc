//! Lookups, and read transactions of one state of a store.

use super::open::{OpenStore, OpenTable};
use super::types::{
    nuthatch_store, nuthatch_store_entry, nuthatch_store_key, nuthatch_store_range,
    nuthatch_store_read_transaction, nuthatch_store_row, nuthatch_store_scan_options,
    nuthatch_store_table, range_of, scan_of,
};
use crate::error::{Result, nuthatch_error};
use crate::handles::{self, HandleObject};
use crate::memory::export_body;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store_engine::{Entry, Read, ReadTxn};

/// The object of a read transaction's handle.
pub(crate) struct OpenReadTransaction {
    txn: Mutex<ReadTxn<'static>>,
    _guest: Arc<()>,
}

impl HandleObject for OpenReadTransaction {
    const KIND: &str = "a read transaction";
}

impl OpenReadTransaction {
    fn lock(&self) -> MutexGuard<'_, ReadTxn<'static>> {
        // A panic leaves a read transaction in a valid state.
        self.txn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the read transaction of a handle.
    fn find(handle: u64) -> Result<Arc<Self>> {
        handles::find(handle)
    }
}

/// Returns the result of a lookup for C.
fn entry_of(entry: Option<Entry<'_>>) -> nuthatch_store_entry {
    let missing = nuthatch_store_entry {
        value: std::ptr::null(),
        value_len: 0,
        version: 0,
        expires_at_ms: 0,
        found: 0,
        is_stamped: 0,
    };
    entry.map_or(missing, |entry| nuthatch_store_entry {
        value: entry.value.as_ptr(),
        value_len: entry.value.len() as u64,
        version: entry.version.unwrap_or(0),
        expires_at_ms: entry.expires_at_ms.unwrap_or(0),
        found: 1,
        is_stamped: u32::from(entry.version.is_some()),
    })
}

/// Looks up a key and returns the result in `entry`. A missing key is not an error. The value is
/// copied to `value` if `capacity` bytes are enough. Otherwise `entry.value` is null, and
/// `entry.value_len` is the required capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_get(
    table: nuthatch_store_table,
    key: *const u8,
    key_len: usize,
    value: *mut u8,
    capacity: usize,
    entry: *mut nuthatch_store_entry,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("entry", entry)?;
        let key = caller.bytes("key", key, key_len)?;
        let room = caller.room("value", value, capacity)?;
        let table = OpenTable::find(table)?;
        let txn = table.store.read()?;
        let found = txn.entry(&table.table, key)?;
        let mut answer = entry_of(found);
        answer.value = std::ptr::null();
        if let Some(found) = found
            && let Some(room) = room.get_mut(..found.value.len())
        {
            room.copy_from_slice(found.value);
            answer.value = value;
        }
        out.put(answer);
        Ok(())
    })
}

/// Counts the keys of a range and returns the number in `count`. `range` may be null: all keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_count(
    table: nuthatch_store_table,
    range: *const nuthatch_store_range,
    count: *mut u64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("count", count)?;
        let range = range_of(caller, range)?;
        let table = OpenTable::find(table)?;
        out.put(table.store.read()?.count(&table.table, &range)?);
        Ok(())
    })
}

/// Opens a read transaction, whose state of the store does not change. The file grows while others
/// write, because pages of this state cannot be reused: close the read transaction soon. Several
/// threads may use it at once. Returns the handle in `read_transaction`. `transaction` and
/// `sequence` may be null; they return the numbers of the last transaction and of the last change
/// in this state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_open_read_transaction(
    store: nuthatch_store,
    read_transaction: *mut nuthatch_store_read_transaction,
    transaction: *mut u64,
    sequence: *mut u64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("read_transaction", read_transaction)?;
        let open = OpenStore::find(store)?;
        let txn = open.store.read_owned()?;
        let last_change = txn.sequence()?;
        caller.maybe_out(transaction).put(txn.id());
        caller.maybe_out(sequence).put(last_change);
        let (txn, guest) = (Mutex::new(txn), Arc::clone(&open.guests));
        out.put(handles::create(OpenReadTransaction { txn, _guest: guest }));
        Ok(())
    })
}

/// Closes a read transaction. All pointers that it returned become invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_close_read_transaction(
    read_transaction: nuthatch_store_read_transaction,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| handles::close::<OpenReadTransaction>(read_transaction).map(drop))
}

/// Looks up several keys in a read transaction. `entries` has `count` elements and returns the
/// results in the order of `keys`. Values are not copied: their pointers refer to the store, and
/// are valid until the read transaction is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_read_transaction_get(
    read_transaction: nuthatch_store_read_transaction,
    table: nuthatch_store_table,
    keys: *const nuthatch_store_key,
    entries: *mut nuthatch_store_entry,
    count: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let keys = caller.list("keys", keys, count)?;
        let entries = caller.room("entries", entries, count)?;
        let (read_transaction, table) =
            (OpenReadTransaction::find(read_transaction)?, OpenTable::find(table)?);
        let txn = read_transaction.lock();
        for (key, entry) in keys.iter().zip(entries) {
            let key = caller.bytes("key", key.key, key.key_len)?;
            *entry = entry_of(txn.entry(&table.table, key)?);
        }
        Ok(())
    })
}

/// Returns the first rows of a scan in a read transaction, at most `capacity`, and their number in
/// `count`. There are fewer than `capacity` only if the scan has no more rows, or if the limit or
/// `batch_bytes` of the options is reached. To continue, call this again with the last key as an
/// excluded bound. Rows are not copied: their pointers refer to the store, and are valid until the
/// read transaction is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_read_transaction_rows(
    read_transaction: nuthatch_store_read_transaction,
    table: nuthatch_store_table,
    options: *const nuthatch_store_scan_options,
    rows: *mut nuthatch_store_row,
    capacity: usize,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("count", count)?;
        let room = caller.room("rows", rows, capacity)?;
        let scan = scan_of(caller, options)?;
        let max_bytes = caller.maybe("options", options)?.map_or(0, |options| options.batch_bytes);
        let max_bytes = if max_bytes == 0 { u64::MAX } else { max_bytes };
        let (read_transaction, table) =
            (OpenReadTransaction::find(read_transaction)?, OpenTable::find(table)?);
        let txn = read_transaction.lock();
        let (mut found, mut bytes) = (0, 0);
        let wanted = caller.maybe("options", options)?.filter(|options| options.has_limit != 0);
        let max_rows = wanted.map_or(u64::MAX, |options| options.limit).min(room.len() as u64);
        txn.scan(&table.table, &scan.limit(max_rows))?.visit(|key, value| {
            let (key_len, value_len) = (key.len() as u32, value.len() as u32);
            let (key, value) = (key.as_ptr(), value.as_ptr());
            room[found] = nuthatch_store_row { key, value, key_len, value_len };
            found += 1;
            bytes += u64::from(key_len) + u64::from(value_len);
            found < room.len() && bytes < max_bytes
        })?;
        out.put(found);
        Ok(())
    })
}
