//! The number of entries that differ between two snapshots.

use nuthatch_snapshot::{Result, Scratch, Snapshot, StoredValue};

/// Number of entries that are looked up at once.
const BATCH_ENTRIES: usize = 256;

/// The number of entries that differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) removed: u64,
    pub(super) added: u64,
    pub(super) changed: u64,
}

/// Counts the entries that differ.
pub(super) fn count(old: &Snapshot, new: &Snapshot) -> Result<Changes> {
    let mut changes = Changes::default();
    let mut scratch = [Scratch::new(), Scratch::new()];
    let (mut batch, mut keys) = (Vec::new(), Vec::new());
    let mut found = vec![None; BATCH_ENTRIES];
    let mut entries = old.iter();
    loop {
        batch.clear();
        keys.clear();
        for entry in entries.by_ref().take(BATCH_ENTRIES) {
            let entry = entry?;
            keys.push(entry.key);
            batch.push(entry.value);
        }
        new.find_many(&keys, &mut found)?;
        for (value, found) in batch.iter().zip(&found) {
            match found {
                None => changes.removed += 1,
                Some(found) if !is_equal(*value, *found, &mut scratch)? => changes.changed += 1,
                Some(_) => {}
            }
        }
        if batch.len() < BATCH_ENTRIES {
            break;
        }
    }
    old.check_readable()?;
    new.check_readable()?;
    changes.added = new.len().saturating_sub(old.len() - changes.removed);
    Ok(changes)
}

fn is_equal(
    old: StoredValue<'_>,
    new: StoredValue<'_>,
    [old_scratch, new_scratch]: &mut [Scratch; 2],
) -> Result<bool> {
    if old.value_type() != new.value_type() {
        return Ok(false);
    }
    if !old.is_compressed() && !new.is_compressed() {
        return Ok(old.bytes() == new.bytes());
    }
    Ok(old.decompress(old_scratch)? == new.decompress(new_scratch)?)
}
