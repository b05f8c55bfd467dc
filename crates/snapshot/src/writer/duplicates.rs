//! Rows in the order of the file, and what becomes of rows with the same key.

use super::batch::RowRef;
use super::rows::Buffers;
use crate::error::{Duplicate, Error, Result};

/// What to do when a key is given more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDuplicate {
    /// The build fails and names the key and both places.
    #[default]
    Error,
    /// The row that was given first counts.
    First,
    /// The row that was given last counts.
    Last,
}

/// A key that was given twice, with the places.
pub(crate) type Found = Duplicate;

/// Sorts the rows by hash, then key, and keeps one row for each key. Answers one of the duplicates,
/// the one that shows up first in the input, if there are any.
pub(crate) fn sort_and_resolve(
    refs: &mut Vec<RowRef>,
    buffers: Buffers<'_>,
    on_duplicate: OnDuplicate,
) -> Option<Found> {
    refs.sort_unstable();
    if !refs.windows(2).any(|pair| pair[0].hash == pair[1].hash) {
        return None;
    }
    // Rows of one hash are in the order they were given; a stable sort by key keeps it so.
    let key = |row: &RowRef| buffers.row(*row).key;
    for same_hash in refs.chunk_by_mut(|a, b| a.hash == b.hash).filter(|run| run.len() > 1) {
        same_hash.sort_by(|a, b| key(a).cmp(key(b)));
    }
    let mut found: Option<Found> = None;
    let same_key = |a: &RowRef, b: &RowRef| a.hash == b.hash && key(a) == key(b);
    for rows in refs.chunk_by(same_key).filter(|rows| rows.len() > 1) {
        let [first, second] = [rows[0], rows[1]].map(|row| buffers.row(row));
        if found.as_ref().is_none_or(|found| second.origin < found.second) {
            let (first_origin, second) = (first.origin, second.origin);
            found = Some(Duplicate { key: first.key.to_vec(), first: first_origin, second });
        }
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

/// Fails when duplicates are errors and some slice found one.
pub(crate) fn refuse(
    on_duplicate: OnDuplicate,
    found: impl IntoIterator<Item = Option<Found>>,
) -> Result<()> {
    let first = found.into_iter().flatten().min_by_key(|found| found.second);
    match first {
        Some(found) if on_duplicate == OnDuplicate::Error => {
            Err(Error::Duplicate(Box::new(found)))
        }
        _ => Ok(()),
    }
}
