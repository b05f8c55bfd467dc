//! Splits a range into parts of about the same size, at keys of branch pages.

use crate::error::Result;
use crate::file::page::{Kind, Page};
use crate::range::Range;
use crate::read::view::View;
use crate::table::Table;
use std::ops::Bound;

/// Maximum number of pages that are read. A table of a hundred million rows has fewer branch pages.
const MAX_PAGES_READ: usize = 4096;

/// Splits a range into at most `max_parts` parts, in order, without gaps or overlaps.
pub(crate) fn split(
    view: View<'_>,
    table: &Table,
    range: &Range,
    max_parts: usize,
) -> Result<Vec<Range>> {
    let whole = || Ok(vec![range.clone()]);
    if max_parts < 2 || range.bounds().is_none() {
        return whole();
    }
    let Some(root) = root_of(view, table)? else { return whole() };
    let keys = separators(view, range, root, max_parts)?;
    let mut ranges = Vec::with_capacity(max_parts);
    let mut rest = range.clone();
    let cuts = (max_parts - 1).min(keys.len());
    for cut in 0..cuts {
        // The cuts are distributed evenly among the keys.
        let key = &keys[(cut + 1) * keys.len() / (cuts + 1)];
        ranges.push(rest.clone().before(&key[..]));
        rest = rest.from(&key[..]);
    }
    ranges.push(rest);
    Ok(ranges)
}

/// Returns the root page of a table, as the transaction sees it; `None` if the range is not split.
fn root_of(view: View<'_>, table: &Table) -> Result<Option<u64>> {
    Ok(view.tree(table)?.and_then(|tree| tree.root()))
}

/// The least key that can be below a page, `None` for the leftmost one, and the page.
type ChildPage = (Option<Vec<u8>>, u64);

/// Returns the keys within the range at which pages begin, of the highest level that has enough of
/// them.
fn separators(view: View<'_>, range: &Range, root: u64, max_parts: usize) -> Result<Vec<Vec<u8>>> {
    let mut level: Vec<ChildPage> = vec![(None, root)];
    let mut read = 0;
    loop {
        let keys: Vec<_> = level.iter().filter_map(|(from, _)| from.clone()).collect();
        let keys: Vec<_> = keys.into_iter().filter(|key| range.contains(key)).collect();
        if keys.len() + 1 >= max_parts || read + level.len() > MAX_PAGES_READ {
            return Ok(keys);
        }
        read += level.len();
        match next_level(view, &level)? {
            Some(below) => level = within(below, range),
            None => return Ok(keys),
        }
    }
}

/// Returns the pages below those of a level; `None` if the level has leaves.
fn next_level(view: View<'_>, level: &[ChildPage]) -> Result<Option<Vec<ChildPage>>> {
    let (file, path) = view.shared.data();
    let size = view.shared.environment.page_size();
    let mut below = Vec::new();
    for (from, number) in level {
        let page = Page::read(file, path, *number, size)?;
        if page.kind != Kind::Branch {
            return Ok(None);
        }
        for index in 0..page.len() {
            let entry = page.branch(index)?;
            // The first key of a branch page is not compared, and may be empty.
            let from = if index == 0 { from.clone() } else { Some(entry.key.to_vec()) };
            below.push((from, entry.page));
        }
    }
    Ok(Some(below))
}

/// Returns the pages that may have keys of the range.
fn within(level: Vec<ChildPage>, range: &Range) -> Vec<ChildPage> {
    let starts_after = |key: &[u8]| match range.start() {
        Bound::Included(start) | Bound::Excluded(start) => key <= start,
        Bound::Unbounded => false,
    };
    let ends_before = |key: &[u8]| match range.end() {
        Bound::Included(end) | Bound::Excluded(end) => key > end,
        Bound::Unbounded => false,
    };
    let ends: Vec<_> = level.iter().skip(1).map(|(from, _)| from.clone()).chain([None]).collect();
    let pages = level.into_iter().zip(ends).filter(|((from, _), end)| {
        let before = end.as_deref().is_some_and(starts_after);
        let after = from.as_deref().is_some_and(ends_before);
        !before && !after
    });
    pages.map(|(page, _)| page).collect()
}
