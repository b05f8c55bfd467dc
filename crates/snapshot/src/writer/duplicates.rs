//! Rows in the order of the file, and what becomes of rows with the same key.

use super::row::RowRef;
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

/// What was found of duplicates.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The duplicate whose second row has the least origin.
    pub(crate) earliest: Option<Duplicate>,
    /// Weight of the rows that do not count.
    pub(crate) dropped: u64,
}

impl Found {
    /// Adds what was found among other rows.
    pub(crate) fn add(&mut self, other: Self) {
        self.dropped += other.dropped;
        let both = [self.earliest.take(), other.earliest];
        self.earliest = both.into_iter().flatten().min_by_key(|found| found.second);
    }
}

/// Sorts the rows by hash, then key, and keeps one row for each key.
pub(crate) fn sort_and_resolve(
    refs: &mut Vec<RowRef>,
    buffers: Buffers<'_>,
    on_duplicate: OnDuplicate,
) -> Found {
    let mut found = Found::default();
    refs.sort_unstable();
    if !refs.windows(2).any(|pair| pair[0].hash == pair[1].hash) {
        return found;
    }
    // Rows of one hash are in the order they were given; a stable sort by key keeps it so.
    let key = |row: &RowRef| buffers.row(*row).key;
    for same_hash in refs.chunk_by_mut(|a, b| a.hash == b.hash).filter(|run| run.len() > 1) {
        same_hash.sort_by(|a, b| key(a).cmp(key(b)));
    }
    let same_key = |a: &RowRef, b: &RowRef| a.hash == b.hash && key(a) == key(b);
    for rows in refs.chunk_by(same_key).filter(|rows| rows.len() > 1) {
        let first = buffers.row(rows[0]);
        let others = rows[1..].iter().map(|row| buffers.row(*row).origin);
        if let Some(second) = others.min()
            && found.earliest.as_ref().is_none_or(|found| second < found.second)
        {
            let (key, first) = (first.key.to_vec(), first.origin);
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

/// Fails when duplicates are errors and some slice found one. Answers the weight of the rows of
/// all slices that do not count.
pub(crate) fn refuse(on_duplicate: OnDuplicate, found: Vec<Found>) -> Result<u64> {
    let dropped = found.iter().map(|found| found.dropped).sum();
    let earliest = found.into_iter().filter_map(|found| found.earliest).min_by_key(|d| d.second);
    match earliest {
        Some(found) if on_duplicate == OnDuplicate::Error => Err(Error::Duplicate(Box::new(found))),
        _ => Ok(dropped),
    }
}
