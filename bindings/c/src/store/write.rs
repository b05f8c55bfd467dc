//! Writes: what C says of them, and those that are committed before the call returns.

use super::open::OpenTable;
use super::types::{nuthatch_store_range, nuthatch_store_row, nuthatch_store_table, range_of};
use crate::error::{Failure, Result, nuthatch_error};
use crate::memory::{Caller, call};
use store_engine::{Batch, Condition, WriteTxn};

/// Writes `value` under `key`; `number` is when it expires, in milliseconds since the beginning of
/// 1970, and 0 for never.
pub const NUTHATCH_STORE_PUT: u32 = 1;
/// Deletes `key`, if it is there.
pub const NUTHATCH_STORE_DELETE: u32 = 2;
/// Deletes all keys of `range`, which must not be null.
pub const NUTHATCH_STORE_DELETE_RANGE: u32 = 3;
/// Has nothing of the batch happen unless `condition` holds of `key`. Writes before it count.
pub const NUTHATCH_STORE_CHECK: u32 = 4;

/// The key is not there.
pub const NUTHATCH_STORE_ABSENT: u32 = 1;
/// The key is there.
pub const NUTHATCH_STORE_PRESENT: u32 = 2;
/// The key is there with this `value`.
pub const NUTHATCH_STORE_EQUALS: u32 = 3;
/// The key of a stamped table is there in the version `number`.
pub const NUTHATCH_STORE_VERSION: u32 = 4;

/// One act of a batch. What an act does not need is not read.
#[repr(C)]
pub struct nuthatch_store_write {
    /// The table.
    pub table: nuthatch_store_table,
    /// `NUTHATCH_STORE_PUT`, `_DELETE`, `_DELETE_RANGE` or `_CHECK`.
    pub act: u32,
    /// Of a check: `NUTHATCH_STORE_ABSENT`, `_PRESENT`, `_EQUALS` or `_VERSION`.
    pub condition: u32,
    /// The key.
    pub key: *const u8,
    /// Bytes of the key.
    pub key_len: usize,
    /// The value.
    pub value: *const u8,
    /// Bytes of the value.
    pub value_len: usize,
    /// When a value expires, or the version of a check.
    pub number: u64,
    /// The keys to be deleted.
    pub range: *const nuthatch_store_range,
}

/// What became of writes that were committed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_store_written {
    /// The transaction they were committed with.
    pub transaction: u64,
    /// The number of the last of these changes; a watch can go on after it.
    pub sequence: u64,
    /// How many keys they deleted.
    pub deleted: u64,
}

impl nuthatch_store_written {
    pub(crate) fn of(written: store_engine::Written) -> Self {
        let store_engine::Written { transaction, sequence, deleted } = written;
        Self { transaction, sequence, deleted }
    }
}

/// The batch that C describes.
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
    Ok(match write.act {
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
        found => return Err(Failure::argument("act", "an act of a batch", found)),
    })
}

/// Writes a value under a key, in a transaction of its own, which is committed when this returns.
/// Waits for whoever writes, in any process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_put(
    table: nuthatch_store_table,
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let key = caller.bytes("key", key, key_len)?;
        let value = caller.bytes("value", value, value_len)?;
        let table = OpenTable::find(table)?;
        Ok(table.store.put(&table.table, key, value)?)
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Deletes a key, in a transaction of its own, which is committed when this returns. Whether it was
/// there is answered through `found`, unless that is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_delete(
    table: nuthatch_store_table,
    key: *const u8,
    key_len: usize,
    found: *mut u32,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let key = caller.bytes("key", key, key_len)?;
        let table = OpenTable::find(table)?;
        let deleted = table.store.delete(&table.table, key)?;
        caller.maybe_out(found).put(u32::from(deleted));
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Writes rows whose keys are above all keys of the table and in order, in one transaction, which
/// is committed when this returns. This is faster than putting them: pages are filled to the brim.
/// Fails with `unordered` for any other key, and nothing is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_append(
    table: nuthatch_store_table,
    rows: *const nuthatch_store_row,
    count: usize,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
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
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}
