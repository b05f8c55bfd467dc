//! The number of entries that differ between two snapshots.

use nuthatch_snapshot::{Difference, Result, Snapshot};

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
    for difference in old.differences(new) {
        *match difference? {
            Difference::Removed(_) => &mut changes.removed,
            Difference::Changed { .. } => &mut changes.changed,
            Difference::Added(_) => &mut changes.added,
        } += 1;
    }
    Ok(changes)
}
