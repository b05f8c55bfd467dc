//! Statistics and maintenance of a store.

use super::open::{OpenStore, OpenTable};
use super::types::{nuthatch_store, nuthatch_store_table};
use crate::error::{Result, nuthatch_error};
use crate::memory::{Caller, export_body, nuthatch_progress};
use std::ffi::{OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Statistics of a store.
#[repr(C)]
pub struct nuthatch_store_stat {
    /// Length of a page in bytes.
    pub page_bytes: u64,
    /// Address space of the memory map in bytes: the file can grow up to this without moving the
    /// map.
    pub map_bytes: u64,
    /// Bytes up to the last page in use, including free pages before it.
    pub used_bytes: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Bytes of free pages, including those that become reusable when older readers end.
    pub free_bytes: u64,
    /// The number of the last committed transaction.
    pub transaction: u64,
    /// Number of open transactions in this process.
    pub open_transactions: u64,
    /// The number of the last change.
    pub sequence: u64,
    /// The number of the oldest kept change, if `keeps_changes` is 1.
    pub oldest_change: u64,
    /// Number of reader slots that are in use or were used, in all processes.
    pub readers: u32,
    /// Maximum number of reader slots.
    pub max_readers: u32,
    /// 1 if the store keeps changes, otherwise 0.
    pub keeps_changes: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Statistics of a table.
#[repr(C)]
pub struct nuthatch_store_table_stat {
    /// Number of rows, including expired rows that were not swept yet.
    pub entries: u64,
    /// Number of branch pages.
    pub branch_pages: u64,
    /// Number of leaf pages, which have the rows.
    pub leaf_pages: u64,
    /// Number of pages with long values.
    pub overflow_pages: u64,
    /// Number of levels of the tree.
    pub depth: u32,
    /// Always 0.
    pub reserved: u32,
}

/// The result of a successful verification.
#[repr(C)]
pub struct nuthatch_store_verified {
    /// The number of the transaction whose state was verified.
    pub transaction: u64,
    /// Number of pages.
    pub pages: u64,
    /// Number of free pages.
    pub free_pages: u64,
    /// Number of pages that are neither in use nor free. They waste space and are no damage, but
    /// LMDB refuses to compact such a file.
    pub lost_pages: u64,
    /// Number of tables, including the main table and system tables.
    pub tables: u64,
    /// Number of rows of all tables, including system tables and expired rows.
    pub entries: u64,
}

/// Returns statistics of a store in `stat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_stat_of(
    store: nuthatch_store,
    stat: *mut nuthatch_store_stat,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
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
            max_readers: stat.max_readers,
            keeps_changes: u32::from(oldest.is_some()),
            reserved: 0,
        });
        Ok(())
    })
}

/// Returns statistics of a table in `stat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_table_stat_of(
    table: nuthatch_store_table,
    stat: *mut nuthatch_store_table_stat,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
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
    })
}

/// Keeps the newest changes of all tables for watches: at most `max_changes` changes with at most
/// `max_bytes` bytes in total. The newest change is kept even if it is longer. The limits apply to
/// all processes until they are changed. If `max_changes` is 0, no changes are kept, and kept
/// changes are removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_keep_changes(
    store: nuthatch_store,
    max_changes: u64,
    max_bytes: u64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| {
        let open = OpenStore::find(store)?;
        if max_changes == 0 {
            return Ok(open.store.keep_no_changes()?);
        }
        Ok(open.store.keep_changes(max_changes, max_bytes)?)
    })
}

/// Syncs the file: all committed writes survive a crash, whatever their durability was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_sync(
    store: nuthatch_store,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| Ok(OpenStore::find(store)?.store.sync()?))
}

/// Removes expired rows. `count` may be null; it returns the number of processed entries of the
/// expiry table, including those that earlier builds left for rows which no longer exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_sweep(
    store: nuthatch_store,
    count: *mut u64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let swept = OpenStore::find(store)?.store.sweep()?;
        caller.maybe_out(count).put(swept);
        Ok(())
    })
}

/// Copies one state of a store to a folder without a store. The folder is created if missing; its
/// parent must exist. Others may write meanwhile. The file of the copy gets its name when it is
/// complete. If `compact` is not 0, free pages are omitted, which takes longer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_backup(
    store: nuthatch_store,
    folder: *const u8,
    folder_len: usize,
    compact: u32,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let folder = path_of(caller, folder, folder_len)?;
        Ok(OpenStore::find(store)?.store.backup(folder, compact != 0)?)
    })
}

/// Compacts the store in a folder: replaces its file by a copy without free pages. No process may
/// have the store open. `before` and `after` may be null; they return the length of the file in
/// bytes before and after.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_compact(
    folder: *const u8,
    folder_len: usize,
    before: *mut u64,
    after: *mut u64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let compacted = store_engine::compact(path_of(caller, folder, folder_len)?)?;
        caller.maybe_out(before).put(compacted.before_bytes);
        caller.maybe_out(after).put(compacted.after_bytes);
        Ok(())
    })
}

/// Verifies all pages of one state of a store. `progress` may be null; it is called on this thread
/// with `user`, the number of verified pages and the number of all pages. `verified` may be null;
/// it returns the result. Damage is the error `corrupt`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_verify(
    store: nuthatch_store,
    progress: nuthatch_progress,
    user: *mut c_void,
    verified: *mut nuthatch_store_verified,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
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
    })
}

fn path_of<'c>(caller: &Caller<'c>, path: *const u8, len: usize) -> Result<&'c Path> {
    let bytes = caller.bytes("folder", path, len)?;
    Ok(Path::new(OsStr::from_bytes(bytes)))
}
