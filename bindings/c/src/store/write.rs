//! Writes: the batches of C, and writes that are committed before the call returns.

use super::open::OpenTable;
use super::types::{nuthatch_store_range, nuthatch_store_row, nuthatch_store_table, range_of};
use crate::error::{Failure, Result, nuthatch_error};
use crate::memory::{Caller, export_body};
use store_engine::{Batch, Condition, WriteTxn};

/// Writes `value` to `key`. `number` is the time of expiry in milliseconds since 1970; 0: never.
pub const NUTHATCH_STORE_PUT: u32 = 1;
/// Deletes `key` if it exists.
pub const NUTHATCH_STORE_DELETE: u32 = 2;
/// Deletes all keys of `range`, which must not be null.
pub const NUTHATCH_STORE_DELETE_RANGE: u32 = 3;
/// Cancels the whole batch unless `condition` holds for `key`, evaluated after the preceding writes
/// of the batch.
pub const NUTHATCH_STORE_CHECK: u32 = 4;

/// Condition: the key does not exist.
pub const NUTHATCH_STORE_ABSENT: u32 = 1;
/// Condition: the key exists.
pub const NUTHATCH_STORE_PRESENT: u32 = 2;
/// Condition: the key has this `value`.
pub const NUTHATCH_STORE_EQUALS: u32 = 3;
/// Condition: the key of a stamped table has the version `number`.
pub const NUTHATCH_STORE_VERSION: u32 = 4;

/// One operation of a batch. Fields that the operation does not need are ignored.
#[repr(C)]
pub struct nuthatch_store_write {
    /// The table.
    pub table: nuthatch_store_table,
    /// The operation: `NUTHATCH_STORE_PUT`, `_DELETE`, `_DELETE_RANGE` or `_CHECK`.
    pub operation: u32,
    /// The condition of a check: `NUTHATCH_STORE_ABSENT`, `_PRESENT`, `_EQUALS` or `_VERSION`.
    pub condition: u32,
    /// The key.
    pub key: *const u8,
    /// Length of the key in bytes.
    pub key_len: usize,
    /// The value.
    pub value: *const u8,
    /// Length of the value in bytes.
    pub value_len: usize,
    /// Time of expiry of a put, or version of a check.
    pub number: u64,
    /// The keys that are deleted by `NUTHATCH_STORE_DELETE_RANGE`.
    pub range: *const nuthatch_store_range,
}

/// The result of a committed batch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_store_written {
    /// The number of the transaction that committed the batch.
    pub transaction: u64,
    /// The number of the last change of the batch. A watch can continue after it.
    pub sequence: u64,
    /// Number of keys that the batch deleted.
    pub deleted: u64,
}

impl nuthatch_store_written {
    pub(crate) fn of(written: store_engine::Written) -> Self {
        let store_engine::Written { transaction, sequence, deleted } = written;
        Self { transaction, sequence, deleted }
    }
}

/// Returns the batch of these writes.
pub(crate) fn batch_of(
    caller: &Caller<'_>,
    writes: *const nuthatch_store_write,
    count: usize,
) -> Result<Batch> {
    let mut batch = Batch::new();
    let mut last: Option<(u64, std::sync::Arc<OpenTable>)> = None;
    for write in caller.list("writes", writes, count)? {
        let table = match last.take() {
            Some((handle, table)) if handle == write.table => table,
            _ => OpenTable::find(write.table)?,
        };
        batch = add(caller, batch, write, &table)?;
        last = Some((write.table, table));
    }
    Ok(batch)
}

fn add(
    caller: &Caller<'_>,
    batch: Batch,
    write: &nuthatch_store_write,
    open: &OpenTable,
) -> Result<Batch> {
    let table = &open.table;
    let key = || caller.bytes("key", write.key, write.key_len);
    let value = || caller.bytes("value", write.value, write.value_len);
    Ok(match write.operation {
        NUTHATCH_STORE_PUT if write.number == 0 => batch.put(table, key()?, value()?),
        NUTHATCH_STORE_PUT => batch.put_until(table, key()?, value()?, write.number),
        NUTHATCH_STORE_DELETE => batch.delete(table, key()?),
        NUTHATCH_STORE_DELETE_RANGE => {
            let range = caller.one("range", write.range)?;
            batch.delete_range(table, range_of(caller, range)?)
        }
        NUTHATCH_STORE_CHECK => {
            let condition = match write.condition {
                NUTHATCH_STORE_ABSENT => Condition::Absent,
                NUTHATCH_STORE_PRESENT => Condition::Present,
                NUTHATCH_STORE_EQUALS => Condition::Equals(value()?),
                NUTHATCH_STORE_VERSION => Condition::Version(write.number),
                found => return Err(Failure::argument("condition", "a condition", found)),
            };
            batch.check(table, key()?, condition)
        }
        found => return Err(Failure::argument("operation", "an operation of a batch", found)),
    })
}

/// Writes a value to a key, in its own transaction, which is committed when the call returns. Waits
/// for the write lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_put(
    table: nuthatch_store_table,
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let key = caller.bytes("key", key, key_len)?;
        let value = caller.bytes("value", value, value_len)?;
        let table = OpenTable::find(table)?;
        Ok(table.store.put(&table.table, key, value)?)
    })
}

/// Deletes a key, in its own transaction, which is committed when the call returns. Waits for the
/// write lock. `found` may be null; it returns 1 if the key existed, otherwise 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_delete(
    table: nuthatch_store_table,
    key: *const u8,
    key_len: usize,
    found: *mut u32,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let key = caller.bytes("key", key, key_len)?;
        let table = OpenTable::find(table)?;
        let deleted = table.store.delete(&table.table, key)?;
        caller.maybe_out(found).put(u32::from(deleted));
        Ok(())
    })
}

/// Appends rows, in one transaction, which is committed when the call returns. The keys must be in
/// ascending order and greater than all keys of the table; otherwise the call fails with
/// `unordered` and writes nothing. Waits for the write lock. Appending is faster than single puts
/// and fills pages completely.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_append(
    table: nuthatch_store_table,
    rows: *const nuthatch_store_row,
    count: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let rows = caller.list("rows", rows, count)?;
        let rows = rows.iter().map(|row| {
            let key = caller.bytes("key", row.key, row.key_len as usize)?;
            Ok((key, caller.bytes("value", row.value, row.value_len as usize)?))
        });
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let table = OpenTable::find(table)?;
        let append = |txn: &mut WriteTxn<'_>| {
            rows.iter().try_for_each(|(key, value)| txn.append(&table.table, key, value))
        };
        Ok(table.store.update(append)?)
    })
}
