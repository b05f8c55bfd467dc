//! Sorting of rows, and resolution of duplicates: rows with the same key.

use super::buffer::Buffers;
use super::row::RowRef;
use crate::error::{Duplicate, Error, Result};

/// How rows with the same key are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDuplicate {
    /// The build fails with [`Error::Duplicate`].
    #[default]
    Error,
    /// The row that was added first is kept.
    First,
    /// The row that was added last is kept.
    Last,
}

/// The duplicates among some rows.
#[derive(Debug, Default)]
pub(crate) struct DuplicatesFound {
    /// The duplicate whose second row has the lowest position.
    pub(crate) earliest: Option<Duplicate>,
    /// Total weight of the dropped rows.
    pub(crate) dropped: u64,
}

impl DuplicatesFound {
    /// Adds the duplicates among other rows.
    pub(crate) fn add(&mut self, other: Self) {
        self.dropped += other.dropped;
        let both = [self.earliest.take(), other.earliest];
        self.earliest = both.into_iter().flatten().min_by_key(|found| found.second);
    }
}

/// Sorts rows by hash, then by key, and keeps one row for each key.
pub(crate) fn sort_and_resolve(
    refs: &mut Vec<RowRef>,
    buffers: Buffers<'_>,
    on_duplicate: OnDuplicate,
) -> DuplicatesFound {
    let mut found = DuplicatesFound::default();
    refs.sort_unstable_by_key(|row| row.hash);
    if !refs.windows(2).any(|pair| pair[0].hash == pair[1].hash) {
        return found;
    }
    // Rows with the same key are sorted by their locations: in the order in which they were added.
    let key = |row: &RowRef| buffers.row(*row).key;
    for same_hash in refs.chunk_by_mut(|a, b| a.hash == b.hash).filter(|run| run.len() > 1) {
        same_hash.sort_unstable_by(|a, b| key(a).cmp(key(b)).then(a.cmp(b)));
    }
    let same_key = |a: &RowRef, b: &RowRef| a.hash == b.hash && key(a) == key(b);
    for rows in refs.chunk_by(same_key).filter(|rows| rows.len() > 1) {
        let first = buffers.row(rows[0]);
        let positions = rows[1..].iter().map(|row| buffers.row(*row).position);
        if let Some(second) = positions.min()
            && found.earliest.as_ref().is_none_or(|found| second < found.second)
        {
            let (key, first) = (first.key.to_vec(), first.position);
            found.earliest = Some(Duplicate { key, first, second });
        }
        let kept = if on_duplicate == OnDuplicate::Last { rows.len() - 1 } else { 0 };
        let dropped = rows.iter().enumerate().filter(|(i, _)| *i != kept);
        found.dropped += dropped.map(|(_, row)| buffers.row(*row).weight()).sum::<u64>();
    }
    if on_duplicate == OnDuplicate::Last {
        refs.reverse();
    }
    refs.dedup_by(|next, kept| same_key(next, kept));
    if on_duplicate == OnDuplicate::Last {
        refs.reverse();
    }
    found
}

/// Returns the total weight of the dropped rows of all slices.
///
/// # Errors
/// Returns [`Error::Duplicate`] if duplicates are errors and a slice has one.
pub(crate) fn check(on_duplicate: OnDuplicate, found: Vec<DuplicatesFound>) -> Result<u64> {
    let dropped = found.iter().map(|found| found.dropped).sum();
    let earliest = found.into_iter().filter_map(|found| found.earliest).min_by_key(|d| d.second);
    match earliest {
        Some(found) if on_duplicate == OnDuplicate::Error => Err(Error::Duplicate(Box::new(found))),
        _ => Ok(dropped),
    }
}
