//! Recovers the item files of a folder when it is opened.

use crate::buffer::AlignedBuffer;
use crate::error::{Damage, Result};
use crate::folder::{FolderEntry, items_name};
use crate::inspect::{FileState, has_no_batch, inspect};
use crate::items::ItemFile;
use crate::layout::BLOCK;
use crate::removal_log::RemovedRecords;
use crate::scan::{AtDamage, rebuild};
use crate::seal::seal;
use crate::shared::Shared;
use crate::state::FolderState;

/// What [`Tier::open`](crate::Tier::open) found in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The state in which the folder was left.
    pub state: FolderState,
    /// The records that [`Removals`](crate::Removals) removed. The caller asks it for each entry of
    /// a directory, and drops it after that. Empty after a loss of power: the log is removed then,
    /// because it may be incomplete.
    pub removed: RemovedRecords,
    /// The number of item files.
    pub files: u64,
    /// The number of records in them, deleted and expired ones included.
    pub records: u64,
    /// The number of files that a process did not seal, and that were sealed now.
    pub unsealed_files: u64,
    /// The number of files that were removed because the budget is lower than before.
    pub removed_files: u64,
    /// The batch that was being written when the process ended.
    pub incomplete_batch: Option<Damage>,
    /// What is damaged or cannot be read. Files with a damaged header stay until they are removed
    /// as the oldest, or by their number. If a file of the removal log is damaged or missing, all
    /// records that it may have named are in `removed`.
    pub damage: Vec<Damage>,
}

/// Opens the item files and seals those that are not sealed.
///
/// # Errors
///
/// Returns the error of the system if a file cannot be opened, sealed or removed.
pub(crate) fn recover(
    shared: &Shared,
    entries: &[(u64, FolderEntry)],
    now_ms: u64,
    recovery: &mut Recovery,
) -> Result<()> {
    let last = entries.last().map(|(number, _)| *number);
    for (number, entry) in entries {
        make_room_for_slot(shared, recovery)?;
        let budget = &shared.budget;
        let numbered = (*number, entry);
        let inspected =
            inspect(&shared.folder, numbered, shared.folder_salt, budget, true, |file| {
                shared.prepare(file);
            })?;
        let is_last = recovery.state != FolderState::Closed && Some(*number) == last;
        match inspected.state {
            FileState::Sealed => {
                let footer = inspected.items.footer.get();
                recovery.records += footer.map_or(0, |footer| footer.records);
                shared.files.add(inspected.items);
            }
            // The process died while it created the file.
            FileState::BadHeader(_) if is_last && has_no_batch(&inspected.items, shared.disk()) => {
                shared.folder.remove(&entry.name)?;
            }
            FileState::BadHeader(damage) | FileState::Unreadable(damage) => {
                recovery.damage.push(damage);
                shared.files.add(inspected.items);
            }
            FileState::Unsealed(damage) => {
                recover_unsealed(shared, inspected.items, damage, is_last, now_ms, recovery)?;
            }
        }
    }
    make_room_in_budget(shared, recovery)?;
    recovery.files = shared.files.all().len() as u64;
    Ok(())
}

fn recover_unsealed(
    shared: &Shared,
    items: ItemFile,
    damage: Damage,
    is_expected: bool,
    now_ms: u64,
    recovery: &mut Recovery,
) -> Result<()> {
    let (contents, mut scanned) = rebuild(&items, shared.disk(), items.len(), AtDamage::Stop);
    if !is_expected || scanned.has_io_error {
        recovery.damage.push(damage);
        recovery.damage.append(&mut scanned.damage);
    }
    if scanned.has_io_error {
        // The error may be temporary, so the file is not changed.
        shared.files.add(items);
        return Ok(());
    }
    recovery.incomplete_batch = scanned.damage.pop();
    if contents.records() == 0 {
        return shared.folder.remove(&items.name);
    }
    let mut buffer = AlignedBuffer::new(64 * BLOCK);
    let (end, bytes) = (scanned.data_end, buffer.as_mut_slice());
    seal(shared, &items, &contents, end, now_ms, bytes)?;
    items.publish(scanned.data_end);
    recovery.unsealed_files += 1;
    recovery.records += contents.records();
    shared.files.add(items);
    Ok(())
}

fn make_room_for_slot(shared: &Shared, recovery: &mut Recovery) -> Result<()> {
    if shared.files.is_full() {
        remove_oldest(shared, recovery)?;
    }
    Ok(())
}

fn make_room_in_budget(shared: &Shared, recovery: &mut Recovery) -> Result<()> {
    shared.charge_folder();
    while shared.budget.used() > shared.budget.max_bytes() && remove_oldest(shared, recovery)? {}
    Ok(())
}

/// Removes the oldest file. Returns false if there is none.
fn remove_oldest(shared: &Shared, recovery: &mut Recovery) -> Result<bool> {
    let Some(oldest) = shared.files.all().into_iter().next() else { return Ok(false) };
    let records = oldest.footer.get().map_or(0, |footer| footer.records);
    recovery.records = recovery.records.saturating_sub(records);
    recovery.damage.retain(|damage| damage.file != items_name(oldest.number));
    recovery.removed_files += 1;
    shared.remove_items(oldest.number)?;
    Ok(true)
}
