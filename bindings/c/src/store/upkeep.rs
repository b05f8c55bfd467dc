//! What a store tells of itself, and what is done to all of it.

use super::open::{OpenStore, OpenTable};
use super::types::{nuthatch_store, nuthatch_store_table};
use crate::error::{Result, nuthatch_error};
use crate::memory::{Caller, call, nuthatch_progress};
use std::ffi::{OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a store tells of itself.
#[repr(C)]
pub struct nuthatch_store_stat {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of the addresses that the map has.
    pub map_bytes: u64,
    /// Bytes up to the last page that is in use.
    pub used_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of pages that can be used again.
    pub free_bytes: u64,
    /// The last transaction that was committed.
    pub transaction: u64,
    /// Transactions that are open in this process.
    pub open_transactions: u64,
    /// The number of the last change.
    pub sequence: u64,
    /// The number of the oldest change that is kept, where `keeps_changes` is not 0.
    pub oldest_change: u64,
    /// Slots of readers in use, or used before, in all processes.
    pub readers: u32,
    /// Slots of readers that there are.
    pub readers_most: u32,
    /// Whether changes are kept.
    pub keeps_changes: u32,
    /// 0.
    pub reserved: u32,
}

/// What a table tells of itself.
#[repr(C)]
pub struct nuthatch_store_table_stat {
    /// Rows, those among them that have expired and were not swept yet.
    pub entries: u64,
    /// Pages that lead to others.
    pub branch_pages: u64,
    /// Pages with rows.
    pub leaf_pages: u64,
    /// Pages with long values.
    pub overflow_pages: u64,
    /// Levels of the tree.
    pub depth: u32,
    /// 0.
    pub reserved: u32,
}

/// What a store has all pages of which were checked.
#[repr(C)]
pub struct nuthatch_store_verified {
    /// The transaction whose state was verified.
    pub transaction: u64,
    /// Pages of the file.
    pub pages: u64,
    /// Pages that can be used again.
    pub free_pages: u64,
    /// Pages that are neither in use nor free: lost room, and no damage. LMDB refuses to compact
    /// such a file.
    pub lost_pages: u64,
    /// Tables, the main one among them.
    pub tables: u64,
    /// Rows of all tables.
    pub entries: u64,
}

/// What a store tells of itself, through `stat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_stat_of(
    store: nuthatch_store,
    stat: *mut nuthatch_store_stat,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let mut out = caller.out("stat", stat)?;
        let open = OpenStore::find(store)?;
        let (stat, oldest) = (open.store.stat()?, open.store.oldest_change()?);
        out.put(nuthatch_store_stat {
            page_bytes: stat.page_bytes,
            map_bytes: stat.map_bytes,
            used_bytes: stat.used_bytes,
            file_bytes: stat.file_bytes,
            free_bytes: stat.free_bytes,
            transaction: stat.transaction,
            open_transactions: stat.open_transactions,
            sequence: stat.sequence,
            oldest_change: oldest.unwrap_or(0),
            readers: stat.readers,
            readers_most: stat.readers_most,
            keeps_changes: u32::from(oldest.is_some()),
            reserved: 0,
        });
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// What a table tells of itself, through `stat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_table_stat_of(
    table: nuthatch_store_table,
    stat: *mut nuthatch_store_table_stat,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let mut out = caller.out("stat", stat)?;
        let open = OpenTable::find(table)?;
        let stat = open.store.table_stat(&open.table)?;
        out.put(nuthatch_store_table_stat {
            entries: stat.entries,
            branch_pages: stat.branch_pages,
            leaf_pages: stat.leaf_pages,
            overflow_pages: stat.overflow_pages,
            depth: stat.depth,
            reserved: 0,
        });
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Keeps the last changes of all tables for watches from now on: so many at most, of so many bytes
/// altogether. That holds for all processes, until it is changed. 0 keeps none, and lets go of
/// those that are kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_keep_changes(
    store: nuthatch_store,
    most: u64,
    most_bytes: u64,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |_: &Caller<'_>| {
        let open = OpenStore::find(store)?;
        if most == 0 {
            return Ok(open.store.keep_no_changes()?);
        }
        Ok(open.store.keep_changes(most, most_bytes)?)
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Makes everything that was committed safe from crashes, however it was committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_sync(
    store: nuthatch_store,
    error: *mut nuthatch_error,
) -> i32 {
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, |_| Ok(OpenStore::find(store)?.store.sync()?)) }
}

/// Takes rows out that have expired. How many times of expiry it went through is answered through
/// `count`, unless that is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_sweep(
    store: nuthatch_store,
    count: *mut u64,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let swept = OpenStore::find(store)?.store.sweep()?;
        caller.maybe_out(count).put(swept);
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Copies a store, in the state of one moment and while others write, into a folder that has none
/// yet and is made if it is not there. The copy appears when it is whole. With `compact` not 0,
/// free pages are left out, which takes longer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_backup(
    store: nuthatch_store,
    folder: *const u8,
    folder_len: usize,
    compact: u32,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let folder = path_of(caller, folder, folder_len)?;
        Ok(OpenStore::find(store)?.store.backup(folder, compact != 0)?)
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Makes the store in a folder as small as it can be, in its place. No process may have it open.
/// Bytes of the file before and after are answered through `before` and `after`, unless they are
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_compact(
    folder: *const u8,
    folder_len: usize,
    before: *mut u64,
    after: *mut u64,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let compacted = store_engine::compact(path_of(caller, folder, folder_len)?)?;
        caller.maybe_out(before).put(compacted.before_bytes);
        caller.maybe_out(after).put(compacted.after_bytes);
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Checks all pages of a store, as one transaction sees them. `progress`, unless it is null, is
/// called on this thread with `user`, the pages that are done and all there are. What was found is
/// answered through `verified`, unless that is null. Damage is the error `corrupt`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_verify(
    store: nuthatch_store,
    progress: nuthatch_progress,
    user: *mut c_void,
    verified: *mut nuthatch_store_verified,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let open = OpenStore::find(store)?;
        let found = open.store.verify(caller.progress(progress, user))?;
        caller.maybe_out(verified).put(nuthatch_store_verified {
            transaction: found.transaction,
            pages: found.pages,
            free_pages: found.free_pages,
            lost_pages: found.lost_pages,
            tables: found.tables,
            entries: found.entries,
        });
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

fn path_of<'c>(caller: &Caller<'c>, path: *const u8, len: usize) -> Result<&'c Path> {
    let bytes = caller.bytes("folder", path, len)?;
    Ok(Path::new(OsStr::from_bytes(bytes)))
}
