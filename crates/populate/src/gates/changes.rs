//! The number of entries that differ between two snapshots.

use crate::error::Result;
use crate::interruption::Interruption;
use nuthatch_snapshot::{Difference, Snapshot};

/// The number of entries that differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) removed: u64,
    pub(super) added: u64,
    pub(super) changed: u64,
}

/// Counts the entries that differ, until the job is interrupted.
pub(super) fn count(
    old: &Snapshot,
    new: &Snapshot,
    interruption: &Interruption,
) -> Result<Changes> {
    let mut changes = Changes::default();
    for difference in old.differences(new) {
        interruption.check()?;
        *match difference? {
            Difference::Removed(_) => &mut changes.removed,
            Difference::Changed { .. } => &mut changes.changed,
            Difference::Added(_) => &mut changes.added,
        } += 1;
    }
    Ok(changes)
}
