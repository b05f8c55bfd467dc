//! Expiry: finds expired rows by their time, and removes them in bounded steps.
//!
//! An expired row is invisible immediately. Sweeping reclaims its space: each commit sweeps a few
//! rows, and [`Store::sweep`](crate::Store::sweep) all expired ones.
//!
//! The expiry table has one entry for each row that expires. The stamp of a row identifies its
//! entry, so a write that replaces or deletes the row removes the entry in the same transaction.

use super::txn::WriteTxn;
use crate::codec::integers::{key_of, number_of};
use crate::error::{Error, Result};
use crate::pages::{Access, TableId};
use crate::read::Read;
use crate::read::rows::Rows;
use crate::scan::Scan;
use crate::stamp::Stamp;
use crate::table::Table;

/// Maximum number of entries of the expiry table that a commit sweeps.
pub(crate) const SWEEP_AT_COMMIT: u64 = 64;

/// Offsets within an entry of the expiry table, as in `docs/formats/store.md`.
pub(crate) mod layout {
    pub(crate) const TIME: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const KEY_LEN: usize = 16;
    pub(crate) const NAME_LEN: usize = 0;
    pub(crate) const NAME: usize = 1;
}

/// Adds the entry of a row to the expiry table, if the row expires.
pub(crate) fn add_entry(
    txn: &mut WriteTxn<'_>,
    table: &Table,
    key: &[u8],
    stamp: Stamp,
) -> Result<()> {
    if stamp.expiry_ms == 0 {
        return Ok(());
    }
    // Names have at most 200 bytes.
    let place = [&[table.name().len() as u8][..], table.name().as_bytes(), key].concat();
    let entry = entry_key(stamp);
    let access = Access::Put { row_len: entry.len() + place.len() };
    txn.check_system_row(TableId::EXPIRY, &entry, access)?;
    let (shared, heed, journal) = txn.parts();
    let Some(system_tables) = journal.system_tables() else {
        let expected = "a store with settings, since the table is stamped";
        return Err(Error::table(table.name(), expected, "none"));
    };
    let put = system_tables.expiry.put(heed, &entry, &place);
    put.map_err(|e| shared.environment.error("add a time of expiry", e))
}

/// Removes the entry of a row that was replaced or deleted, if it has one.
pub(crate) fn remove_entry(txn: &mut WriteTxn<'_>, stamp: Stamp) -> Result<()> {
    if stamp.expiry_ms == 0 {
        return Ok(());
    }
    txn.check_system_row(TableId::EXPIRY, &entry_key(stamp), Access::Delete)?;
    let (shared, heed, journal) = txn.parts();
    let Some(system_tables) = journal.system_tables() else { return Ok(()) };
    // A sweep may have removed the entry before the row.
    let removed = system_tables.expiry.delete(heed, &entry_key(stamp));
    removed.map(|_| ()).map_err(|e| shared.environment.error("remove a time of expiry", e))
}

/// Returns the key of a row's entry in the expiry table.
fn entry_key(stamp: Stamp) -> Vec<u8> {
    [key_of(stamp.expiry_ms), key_of(stamp.version)].concat()
}

/// An entry of the expiry table whose time has passed.
struct Due {
    entry: Vec<u8>,
    version: u64,
    table: String,
    key: Vec<u8>,
}

/// What a sweep did with entries of the expiry table.
pub(crate) struct Swept {
    /// Entries that were removed, with their rows.
    pub(crate) removed: u64,
    /// Entries that remain, because this process has not opened their table. It opens the table
    /// before the next transaction.
    pub(crate) unopened: u64,
}

/// Removes expired rows, up to `limit` entries of the expiry table.
pub(crate) fn sweep(txn: &mut WriteTxn<'_>, limit: u64) -> Result<Swept> {
    let due = due(txn, limit)?;
    let mut unopened = 0;
    for entry in &due {
        let (shared, _, journal) = txn.parts();
        let Some(system_tables) = journal.system_tables() else { break };
        let Some(table) = shared.opened(&entry.table) else {
            // Another process created the table.
            shared.record_unopened_table();
            unopened += 1;
            continue;
        };
        txn.check_system_row(TableId::EXPIRY, &entry.entry, Access::Delete)?;
        let deleted = system_tables.expiry.delete(txn.parts().1, &entry.entry);
        deleted.map_err(|e| shared.environment.error("sweep", e))?;
        let row = txn.view().stored_row(&table, &entry.key)?;
        // Earlier builds left the entry in place when the row was written again.
        let same = row.map(Stamp::split).transpose()?;
        if same.is_some_and(|(stamp, _)| stamp.version == entry.version) {
            txn.delete_row(&table, &entry.key)?;
            txn.journal_delete(&table, &entry.key, true)?;
        }
    }
    Ok(Swept { removed: due.len() as u64 - unopened, unopened })
}

fn due(txn: &mut WriteTxn<'_>, limit: u64) -> Result<Vec<Due>> {
    let Some(system_tables) = txn.parts().2.system_tables() else { return Ok(Vec::new()) };
    let view = txn.view();
    let rows = Rows::of_system_table(view, TableId::EXPIRY, system_tables.expiry, &Scan::all())?;
    let (mut now_ms, mut due) = (None, Vec::new());
    for entry in rows {
        let (time, place) = entry?;
        let wrong = || Error::decode("a time of expiry", time.escape_ascii().to_string());
        let (at, version) = time.split_at_checked(layout::VERSION).ok_or_else(wrong)?;
        let at_ms = number_of(at).ok_or_else(wrong)?;
        if at_ms > *now_ms.get_or_insert_with(|| view.shared.clock.now_ms())
            || due.len() as u64 >= limit
        {
            break;
        }
        let (name_len, rest) = place.split_first().ok_or_else(wrong)?;
        let (name, key) = rest.split_at_checked(usize::from(*name_len)).ok_or_else(wrong)?;
        let table = std::str::from_utf8(name).map_err(|_| wrong())?.to_owned();
        let version = number_of(version).ok_or_else(wrong)?;
        due.push(Due { entry: time.to_vec(), version, table, key: key.to_vec() });
    }
    Ok(due)
}

const _: () = assert!(layout::KEY_LEN == layout::VERSION + 8 && layout::TIME == 0);
const _: () = assert!(layout::NAME == layout::NAME_LEN + 1);
