//! The rows of a scan, one after the other, where they lie.

use crate::environment::Bare;
use crate::error::Result;
use crate::file::corrupt;
use crate::range::Bounds;
use crate::read::View;
use crate::scan::Scan;
use crate::stamp::Stamp;
use crate::store::Shared;
use crate::table::Table;
use heed::types::Bytes;
use heed::{RoIter, RoRange, RoRevRange, RoTxn};
use std::fmt;
use std::ops::Bound;

/// A key and its value.
pub type Row<'t> = (&'t [u8], &'t [u8]);

/// A scan of fewer rows than this compares keys; a longer one looks its last row up first.
const WORTH_A_LOOKUP: u64 = 16;

/// The rows of a scan, in order, lent from the store until the transaction ends or writes.
///
/// The end of a range is found by where its last row lies, which is looked up first: so a row costs
/// a step of LMDB's cursor and the comparison of two addresses, not of two keys.
pub struct Rows<'t> {
    steps: Steps<'t>,
    /// The address of the last row's key; zero when that is not known.
    last: usize,
    /// Rows that may still come.
    left: u64,
    /// What happens to rows before they are handed out; nothing with whole rows of plain tables.
    filter: Filter,
    shared: &'t Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Filter {
    keys_only: bool,
    /// The time for a stamped table.
    now_ms: Option<u64>,
}

impl Filter {
    const NONE: Self = Self { keys_only: false, now_ms: None };
}

enum Steps<'t> {
    /// A whole plain table, from its first row on; `left` is how many rows it has.
    All(RoIter<'t, Bytes, Bytes>),
    Forward(RoRange<'t, Bytes, Bytes>),
    Backward(RoRevRange<'t, Bytes, Bytes>),
    None,
}

impl<'t> Rows<'t> {
    pub(crate) fn new(view: View<'t>, table: &Table, scan: &Scan) -> Result<Self> {
        let bare = table.bare(view.shared.id)?;
        let error = |e| view.shared.table_error(table, "scan", e);
        let now_ms = table.is_stamped().then(|| view.now_ms());
        let mut rows = Self {
            steps: Steps::None,
            last: 0,
            left: scan.limit,
            filter: Filter { keys_only: scan.keys_only, now_ms },
            shared: view.shared,
        };
        if let Some((start, end)) = scan.range.bounds().filter(|_| scan.limit > 0) {
            let mut bounds = (start, end);
            let far = if scan.reverse { &mut bounds.0 } else { &mut bounds.1 };
            if *far != Bound::Unbounded && scan.limit > WORTH_A_LOOKUP {
                let last = outermost(bare, view.txn, (start, end), !scan.reverse);
                let Some((key, _)) = last.map_err(error)? else { return Ok(rows) };
                rows.last = key.as_ptr().addr();
                *far = Bound::Unbounded;
            }
            rows.steps = if rows.filter == Filter::NONE && !scan.reverse && scan.range.is_all() {
                rows.left = scan.limit.min(bare.len(view.txn).map_err(error)?);
                Steps::All(bare.iter(view.txn).map_err(error)?)
            } else {
                Steps::new(bare, view.txn, bounds, scan.reverse).map_err(error)?
            };
        }
        Ok(rows)
    }

    #[cold]
    fn end(&mut self) -> Option<Result<Row<'t>>> {
        self.left = 0;
        self.steps = Steps::None;
        None
    }

    /// Shows the rows to a closure until it has enough of them, which is faster than asking for one
    /// after the other. Whether it had enough before the end.
    #[inline]
    pub fn visit(mut self, visit: impl FnMut(&'t [u8], &'t [u8]) -> bool) -> Result<bool> {
        let (shared, last) = (self.shared, self.last);
        let course = Course { left: &mut self.left, last, filter: self.filter };
        match self.steps {
            Steps::All(steps) => plain(steps, self.left, last, shared, visit),
            Steps::Forward(steps) if self.filter == Filter::NONE => {
                plain(steps, self.left, last, shared, visit)
            }
            Steps::Forward(steps) => course.run(steps, shared, visit),
            Steps::Backward(steps) => course.run(steps, self.shared, visit),
            Steps::None => Ok(false),
        }
    }

    /// The next row, however it comes.
    #[inline(never)]
    fn next_slowly(&mut self) -> Option<Result<Row<'t>>> {
        if matches!(self.steps, Steps::All(_)) && self.left > 0 {
            // The short way had a row for each that the table has, unless one could not be read.
            let expected = format!("{} more rows of a table", self.left);
            self.end();
            let path = self.shared.environment.path();
            return Some(Err(corrupt(path, 0, expected, "none that can be read")));
        }
        let mut found = None;
        let course = Course { left: &mut self.left, last: self.last, filter: self.filter };
        let take = |key, value| {
            found = Some((key, value));
            false
        };
        let ran = match &mut self.steps {
            Steps::All(steps) => course.run(steps, self.shared, take),
            Steps::Forward(steps) => course.run(steps, self.shared, take),
            Steps::Backward(steps) => course.run(steps, self.shared, take),
            Steps::None => return None,
        };
        match (ran, found) {
            (Err(error), _) => {
                self.end();
                Some(Err(error))
            }
            (Ok(_), Some(row)) => Some(Ok(row)),
            (Ok(_), None) => self.end(),
        }
    }
}

/// The first or last row between two bounds.
fn outermost<'t>(
    bare: Bare,
    txn: &'t RoTxn<'t>,
    bounds: Bounds<'_>,
    reverse: bool,
) -> heed::Result<Option<Row<'t>>> {
    match Steps::new(bare, txn, bounds, reverse)? {
        Steps::All(mut steps) => steps.next().transpose(),
        Steps::Forward(mut steps) => steps.next().transpose(),
        Steps::Backward(mut steps) => steps.next().transpose(),
        Steps::None => Ok(None),
    }
}

impl<'t> Steps<'t> {
    fn new(
        bare: Bare,
        txn: &'t RoTxn<'t>,
        bounds: Bounds<'_>,
        reverse: bool,
    ) -> heed::Result<Self> {
        Ok(if reverse {
            Self::Backward(bare.rev_range(txn, &bounds)?)
        } else {
            Self::Forward(bare.range(txn, &bounds)?)
        })
    }
}

impl<'t> Iterator for Rows<'t> {
    type Item = Result<Row<'t>>;

    // Rows of whole plain tables take the short way, in line. The others are a call, so that what
    // it answers does not pass through memory on the short way: that cost a third of a step.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if let (Steps::All(steps), 1..) = (&mut self.steps, self.left)
            && let Some(Ok((key, value))) = steps.next()
        {
            self.left -= 1;
            return Some(Ok((key, value)));
        }
        self.next_slowly()
    }
}

/// Shows rows of a plain table to a closure, as they lie there.
#[inline(always)]
fn plain<'t>(
    steps: impl Iterator<Item = heed::Result<Row<'t>>>,
    mut left: u64,
    last: usize,
    shared: &Shared,
    mut visit: impl FnMut(&'t [u8], &'t [u8]) -> bool,
) -> Result<bool> {
    if left == 0 {
        return Ok(false);
    }
    for row in steps {
        let (key, value) = row.map_err(|e| shared.environment.error("scan", e))?;
        if !visit(key, value) {
            return Ok(true);
        }
        left -= 1;
        if left == 0 || key.as_ptr().addr() == last {
            break;
        }
    }
    Ok(false)
}

/// What is left to do of a scan.
struct Course<'s> {
    left: &'s mut u64,
    last: usize,
    filter: Filter,
}

impl Course<'_> {
    /// Shows rows to a closure until it has enough of them. Whether it has.
    #[inline(always)]
    fn run<'t>(
        self,
        mut steps: impl Iterator<Item = heed::Result<Row<'t>>>,
        shared: &Shared,
        mut visit: impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<bool> {
        let Filter { keys_only, now_ms } = self.filter;
        while *self.left > 0 {
            let (key, mut value) = match steps.next() {
                Some(Ok(row)) => row,
                Some(Err(error)) => return Err(shared.environment.error("scan", error)),
                None => break,
            };
            let is_last = key.as_ptr().addr() == self.last;
            if let Some(now_ms) = now_ms {
                match live(value, now_ms)? {
                    Some(found) => value = found,
                    None if is_last => break,
                    None => continue,
                }
            }
            *self.left = if is_last { 0 } else { *self.left - 1 };
            if !visit(key, if keys_only { &[] } else { value }) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The value of a row of a stamped table; `None` when it has expired.
#[inline]
fn live(row: &[u8], now_ms: u64) -> Result<Option<&[u8]>> {
    let (stamp, value) = Stamp::split(row)?;
    Ok(stamp.lives(now_ms).then_some(value))
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("left", &self.left).finish_non_exhaustive()
    }
}
