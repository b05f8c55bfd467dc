//! The rows of a scan, one after the other, where they lie.

use crate::environment::Bare;
use crate::error::{Error, Result};
use crate::pages::{Ahead, Cursor, TableId};
use crate::range::Bounds;
use crate::read::{Source, View};
use crate::scan::Scan;
use crate::stamp::Stamp;
use crate::store::Shared;
use crate::table::Table;
use heed::types::Bytes;
use heed::{RoRange, RoRevRange, RoTxn};
use std::fmt;
use std::ops::Bound;

/// A key and its value.
pub type Row<'t> = (&'t [u8], &'t [u8]);

/// A scan through LMDB of fewer rows than this compares keys; a longer one looks its last row up
/// first.
const MIN_ROWS_FOR_LOOKUP: u64 = 16;

/// The rows of a scan, in order, lent from the store until the transaction ends or writes.
///
/// A transaction goes through the pages of a table itself and checks them, unless it has changed
/// the table: then it uses LMDB's cursor, and checks the committed pages of the table ahead of it.
pub struct Rows<'t> {
    steps: Steps<'t>,
    /// With LMDB's cursor, the address of the last row's key; zero when that is not known.
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
    /// The pages, checked.
    Pages(Cursor<'t>),
    /// LMDB's cursor, with the check ahead of it.
    Forward(RoRange<'t, Bytes, Bytes>, Option<Ahead<'t>>),
    Backward(RoRevRange<'t, Bytes, Bytes>, Option<Ahead<'t>>),
    None,
}

impl<'t> Rows<'t> {
    pub(crate) fn new(view: View<'t>, table: &Table, scan: &Scan) -> Result<Self> {
        let bare = table.bare(view.shared.id)?;
        let now_ms = table.is_stamped().then(|| view.now_ms());
        let filter = Filter { keys_only: scan.keys_only, now_ms };
        let mut rows =
            Self { steps: Steps::None, last: 0, left: scan.limit, filter, shared: view.shared };
        let Some(bounds) = scan.range.bounds().filter(|_| scan.limit > 0) else { return Ok(rows) };
        let source = view.source(table)?;
        rows.begin(view, source, bare, bounds, scan, |e| {
            view.shared.table_error(table, "scan", e)
        })?;
        Ok(rows)
    }

    /// Returns the rows of one of the store's own tables.
    pub(crate) fn of_own(
        view: View<'t>,
        table: TableId<'static>,
        bare: Bare,
        scan: &Scan,
    ) -> Result<Self> {
        let (last, left, filter, shared) = (0, scan.limit, Filter::NONE, view.shared);
        let mut rows = Self { steps: Steps::None, last, left, filter, shared };
        let Some(bounds) = scan.range.bounds() else { return Ok(rows) };
        let source = view.own_source(table)?;
        rows.begin(view, source, bare, bounds, scan, |e| shared.environment.error("scan", e))?;
        Ok(rows)
    }

    fn begin(
        &mut self,
        view: View<'t>,
        source: Source<'t>,
        bare: Bare,
        bounds: Bounds<'_>,
        scan: &Scan,
        error: impl Fn(heed::Error) -> Error,
    ) -> Result<()> {
        let ahead = match source {
            Source::Pages(tree) => {
                self.steps = Steps::Pages(Cursor::new(tree, bounds, scan.reverse)?);
                return Ok(());
            }
            Source::Changed(tree) => {
                // LMDB looks the other end up, too.
                Ahead::new(tree, bounds, !scan.reverse)?;
                Some(Ahead::new(tree, bounds, scan.reverse)?)
            }
            Source::Lmdb => None,
        };
        self.through_lmdb(view, bare, bounds, scan, ahead).map_err(error)
    }

    fn through_lmdb(
        &mut self,
        view: View<'t>,
        bare: Bare,
        mut bounds: Bounds<'_>,
        scan: &Scan,
        ahead: Option<Ahead<'t>>,
    ) -> heed::Result<()> {
        let inner = bounds;
        let far = if scan.reverse { &mut bounds.0 } else { &mut bounds.1 };
        if *far != Bound::Unbounded && scan.limit > MIN_ROWS_FOR_LOOKUP {
            let last = outermost(bare, view.txn, inner, !scan.reverse)?;
            let Some((key, _)) = last else {
                // The first step finds no row, and checks that the pages have none.
                self.steps = Steps::new(bare, view.txn, inner, scan.reverse, ahead)?;
                return Ok(());
            };
            self.last = key.as_ptr().addr();
            *far = Bound::Unbounded;
        }
        self.steps = Steps::new(bare, view.txn, bounds, scan.reverse, ahead)?;
        Ok(())
    }

    #[cold]
    fn end(&mut self) -> Option<Result<Row<'t>>> {
        self.left = 0;
        self.steps = Steps::None;
        None
    }

    /// Calls a closure with each row until it returns false, which is faster than to ask for one
    /// row after the other. Returns whether the closure ended the scan.
    #[inline]
    pub fn visit(self, mut visit: impl FnMut(&'t [u8], &'t [u8]) -> bool) -> Result<bool> {
        let (shared, filter) = (self.shared, self.filter);
        let mut course = Course { left: self.left, last: self.last, filter };
        match self.steps {
            Steps::Pages(cursor) if filter == Filter::NONE => {
                course.run_pages::<false>(cursor, &mut visit)
            }
            Steps::Pages(cursor) => course.run_pages::<true>(cursor, &mut visit),
            Steps::Forward(mut steps, mut ahead) => {
                course.run(&mut steps, &mut ahead, shared, &mut visit)
            }
            Steps::Backward(mut steps, mut ahead) => {
                course.run(&mut steps, &mut ahead, shared, &mut visit)
            }
            Steps::None => Ok(false),
        }
    }

    /// Returns the next row: of a leaf that is not entered yet, of a stamped table, or of LMDB's
    /// cursor.
    #[inline(never)]
    fn next_slowly(&mut self) -> Option<Result<Row<'t>>> {
        let mut course = Course { left: self.left, last: self.last, filter: self.filter };
        let mut found = None;
        let mut take = |key, value| {
            found = Some((key, value));
            false
        };
        let walked = match &mut self.steps {
            Steps::Pages(cursor) => course.next_of_pages(cursor, &mut take),
            Steps::Forward(steps, ahead) => course.run(steps, ahead, self.shared, &mut take),
            Steps::Backward(steps, ahead) => course.run(steps, ahead, self.shared, &mut take),
            Steps::None => return None,
        };
        self.left = course.left;
        match (walked, found) {
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
    match Steps::new(bare, txn, bounds, reverse, None)? {
        Steps::Forward(mut steps, _) => steps.next().transpose(),
        Steps::Backward(mut steps, _) => steps.next().transpose(),
        Steps::Pages(_) | Steps::None => Ok(None),
    }
}

impl<'t> Steps<'t> {
    /// Opens LMDB's cursor.
    fn new(
        bare: Bare,
        txn: &'t RoTxn<'t>,
        bounds: Bounds<'_>,
        reverse: bool,
        ahead: Option<Ahead<'t>>,
    ) -> heed::Result<Self> {
        Ok(if reverse {
            Self::Backward(bare.rev_range(txn, &bounds)?, ahead)
        } else {
            Self::Forward(bare.range(txn, &bounds)?, ahead)
        })
    }
}

impl<'t> Iterator for Rows<'t> {
    type Item = Result<Row<'t>>;

    // The next row of a leaf takes the short way, in line. Everything else is a call, so that its
    // result does not pass through memory on the short way.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if let Steps::Pages(cursor) = &mut self.steps
            && self.filter == Filter::NONE
            && self.left > 0
            && let Some(row) = cursor.next_in_leaf()
        {
            self.left -= 1;
            return Some(Ok(row));
        }
        self.next_slowly()
    }
}

/// What is left to do of a scan.
struct Course {
    left: u64,
    last: usize,
    filter: Filter,
}

impl Course {
    /// Shows the rows of checked pages to a closure until it has enough. Returns whether it has.
    #[inline(always)]
    fn run_pages<'t, const FILTERED: bool>(
        &mut self,
        cursor: Cursor<'t>,
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<bool> {
        let mut enough = false;
        cursor.visit(|key, value| {
            if !FILTERED {
                self.left -= 1;
                enough = !visit(key, value);
                return Ok(!enough && self.left > 0);
            }
            let shown = self.show(key, value, visit)?;
            enough = matches!(shown, Shown::Enough);
            Ok(matches!(shown, Shown::GoOn))
        })?;
        Ok(enough)
    }

    /// Shows rows of checked pages until the closure takes one.
    fn next_of_pages<'t>(
        &mut self,
        cursor: &mut Cursor<'t>,
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<bool> {
        while self.left > 0 {
            let Some((key, value)) = cursor.next_row()? else { break };
            match self.show(key, value, visit)? {
                Shown::Enough => return Ok(true),
                Shown::Last => break,
                Shown::GoOn => {}
            }
        }
        Ok(false)
    }

    /// Shows rows of LMDB's cursor to a closure until it has enough. Returns whether it has.
    fn run<'t>(
        &mut self,
        steps: &mut impl Iterator<Item = heed::Result<Row<'t>>>,
        ahead: &mut Option<Ahead<'t>>,
        shared: &Shared,
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<bool> {
        while self.left > 0 {
            let (key, value) = match steps.next() {
                Some(Ok(row)) => row,
                Some(Err(error)) => return Err(shared.environment.error("scan", error)),
                None => {
                    ahead.as_mut().map_or(Ok(()), Ahead::finish)?;
                    break;
                }
            };
            ahead.as_mut().map_or(Ok(()), |ahead| ahead.pass(key))?;
            match self.show(key, value, visit)? {
                Shown::Enough => return Ok(true),
                Shown::Last => break,
                Shown::GoOn => {}
            }
        }
        Ok(false)
    }

    /// Shows a row to a closure, if the filter lets it pass.
    #[inline(always)]
    fn show<'t>(
        &mut self,
        key: &'t [u8],
        mut value: &'t [u8],
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<Shown> {
        let is_last = key.as_ptr().addr() == self.last;
        if let Some(now_ms) = self.filter.now_ms {
            match live(value, now_ms)? {
                Some(found) => value = found,
                None => return Ok(if is_last { Shown::Last } else { Shown::GoOn }),
            }
        }
        if self.filter.keys_only {
            value = &[];
        }
        self.left -= 1;
        if is_last {
            self.left = 0;
        }
        Ok(match visit(key, value) {
            false => Shown::Enough,
            true if self.left == 0 => Shown::Last,
            true => Shown::GoOn,
        })
    }
}

/// What came of showing a row.
enum Shown {
    /// The closure has enough.
    Enough,
    /// It was the last one.
    Last,
    GoOn,
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
