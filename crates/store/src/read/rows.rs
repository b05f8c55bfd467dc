//! An iterator over the rows of a scan.

use crate::environment::Dbi;
use crate::error::{Error, Result};
use crate::pages::{Cursor, Precheck, Row, Source, TableId};
use crate::range::Bounds;
use crate::read::view::View;
use crate::scan::Scan;
use crate::shared::Shared;
use crate::stamp::Stamp;
use crate::table::Table;
use heed::types::Bytes;
use heed::{RoRange, RoRevRange, RoTxn};
use std::fmt;
use std::ops::Bound;

/// A scan that uses LMDB's cursor and has an upper bound finds its last row first if its limit is
/// above this number of rows; otherwise the cursor compares each key with the bound.
const MIN_ROWS_FOR_LOOKUP: u64 = 16;

/// An iterator over the rows of a scan, in order, borrowed from the store until the transaction
/// ends or writes.
///
/// It reads and checks the pages of the table itself, unless the transaction has changed the table:
/// then LMDB's cursor reads the rows, and committed pages are checked before the cursor reaches
/// them.
pub struct Rows<'t> {
    cursor: AnyCursor<'t>,
    /// With LMDB's cursor, the address of the last row's key; zero if it is unknown.
    last: usize,
    /// Maximum number of rows that are left.
    left: u64,
    /// Which rows are skipped, and whether values are omitted. Nothing in plain tables, unless only
    /// keys are requested.
    filter: Filter,
    shared: &'t Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Filter {
    keys_only: bool,
    /// The current time, for a stamped table.
    now_ms: Option<u64>,
}

impl Filter {
    const NONE: Self = Self { keys_only: false, now_ms: None };
}

enum AnyCursor<'t> {
    /// The pages, checked.
    Pages(Cursor<'t>),
    /// LMDB's cursor, and the check ahead of it.
    Forward(RoRange<'t, Bytes, Bytes>, Option<Precheck<'t>>),
    Backward(RoRevRange<'t, Bytes, Bytes>, Option<Precheck<'t>>),
    None,
}

impl<'t> Rows<'t> {
    pub(crate) fn new(view: View<'t>, table: &Table, scan: &Scan) -> Result<Self> {
        let dbi = table.dbi(view.shared.id)?;
        let now_ms = table.is_stamped().then(|| view.now_ms());
        let filter = Filter { keys_only: scan.keys_only, now_ms };
        let mut rows = Self {
            cursor: AnyCursor::None,
            last: 0,
            left: scan.limit,
            filter,
            shared: view.shared,
        };
        let Some(bounds) = scan.range.bounds().filter(|_| scan.limit > 0) else { return Ok(rows) };
        let source = view.source(table)?;
        rows.begin(view, source, dbi, bounds, scan, |e| view.shared.table_error(table, "scan", e))?;
        Ok(rows)
    }

    /// Returns the rows of a system table.
    pub(crate) fn of_system_table(
        view: View<'t>,
        table: TableId<'static>,
        dbi: Dbi,
        scan: &Scan,
    ) -> Result<Self> {
        let (last, left, filter, shared) = (0, scan.limit, Filter::NONE, view.shared);
        let mut rows = Self { cursor: AnyCursor::None, last, left, filter, shared };
        let Some(bounds) = scan.range.bounds() else { return Ok(rows) };
        let source = view.system_source(table)?;
        rows.begin(view, source, dbi, bounds, scan, |e| shared.environment.error("scan", e))?;
        Ok(rows)
    }

    fn begin(
        &mut self,
        view: View<'t>,
        source: Source<'t>,
        dbi: Dbi,
        bounds: Bounds<'_>,
        scan: &Scan,
        error: impl Fn(heed::Error) -> Error,
    ) -> Result<()> {
        let ahead = match source {
            Source::Pages(tree) => {
                self.cursor = AnyCursor::Pages(Cursor::new(tree, bounds, scan.reverse)?);
                return Ok(());
            }
            Source::Changed(tree) => {
                // LMDB looks the other end up, too.
                Precheck::new(tree, bounds, !scan.reverse)?;
                Some(Precheck::new(tree, bounds, scan.reverse)?)
            }
            Source::Lmdb => None,
        };
        self.through_lmdb(view, dbi, bounds, scan, ahead).map_err(error)
    }

    fn through_lmdb(
        &mut self,
        view: View<'t>,
        dbi: Dbi,
        mut bounds: Bounds<'_>,
        scan: &Scan,
        ahead: Option<Precheck<'t>>,
    ) -> heed::Result<()> {
        let inner = bounds;
        let far = if scan.reverse { &mut bounds.0 } else { &mut bounds.1 };
        if *far != Bound::Unbounded && scan.limit > MIN_ROWS_FOR_LOOKUP {
            let last = outermost(dbi, view.txn, inner, !scan.reverse)?;
            let Some((key, _)) = last else {
                // The first step finds no row, and checks that the pages have none.
                self.cursor = AnyCursor::new(dbi, view.txn, inner, scan.reverse, ahead)?;
                return Ok(());
            };
            self.last = key.as_ptr().addr();
            *far = Bound::Unbounded;
        }
        self.cursor = AnyCursor::new(dbi, view.txn, bounds, scan.reverse, ahead)?;
        Ok(())
    }

    #[cold]
    fn end(&mut self) -> Option<Result<Row<'t>>> {
        self.left = 0;
        self.cursor = AnyCursor::None;
        None
    }

    /// Calls a closure with each row until the closure returns false. This is faster than the
    /// iterator. Returns whether the closure ended the scan.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a page is damaged.
    #[inline]
    pub fn visit(self, mut visit: impl FnMut(&'t [u8], &'t [u8]) -> bool) -> Result<bool> {
        let (shared, filter) = (self.shared, self.filter);
        let mut remaining = Remaining { left: self.left, last: self.last, filter };
        match self.cursor {
            AnyCursor::Pages(cursor) if filter == Filter::NONE => {
                remaining.run_pages::<false>(cursor, &mut visit)
            }
            AnyCursor::Pages(cursor) => remaining.run_pages::<true>(cursor, &mut visit),
            AnyCursor::Forward(mut cursor, mut ahead) => {
                remaining.run(&mut cursor, &mut ahead, shared, &mut visit)
            }
            AnyCursor::Backward(mut cursor, mut ahead) => {
                remaining.run(&mut cursor, &mut ahead, shared, &mut visit)
            }
            AnyCursor::None => Ok(false),
        }
    }

    /// Returns the next row of another leaf, of a stamped table, or of LMDB's cursor.
    #[inline(never)]
    fn next_slowly(&mut self) -> Option<Result<Row<'t>>> {
        let mut remaining = Remaining { left: self.left, last: self.last, filter: self.filter };
        let mut found = None;
        let mut take = |key, value| {
            found = Some((key, value));
            false
        };
        let walked = match &mut self.cursor {
            AnyCursor::Pages(cursor) => remaining.next_of_pages(cursor, &mut take),
            AnyCursor::Forward(cursor, ahead) => {
                remaining.run(cursor, ahead, self.shared, &mut take)
            }
            AnyCursor::Backward(cursor, ahead) => {
                remaining.run(cursor, ahead, self.shared, &mut take)
            }
            AnyCursor::None => return None,
        };
        self.left = remaining.left;
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

/// Returns the first or last row between two bounds.
fn outermost<'t>(
    dbi: Dbi,
    txn: &'t RoTxn<'t>,
    bounds: Bounds<'_>,
    reverse: bool,
) -> heed::Result<Option<Row<'t>>> {
    match AnyCursor::new(dbi, txn, bounds, reverse, None)? {
        AnyCursor::Forward(mut cursor, _) => cursor.next().transpose(),
        AnyCursor::Backward(mut cursor, _) => cursor.next().transpose(),
        AnyCursor::Pages(_) | AnyCursor::None => Ok(None),
    }
}

impl<'t> AnyCursor<'t> {
    /// Opens LMDB's cursor.
    fn new(
        dbi: Dbi,
        txn: &'t RoTxn<'t>,
        bounds: Bounds<'_>,
        reverse: bool,
        ahead: Option<Precheck<'t>>,
    ) -> heed::Result<Self> {
        Ok(if reverse {
            Self::Backward(dbi.rev_range(txn, &bounds)?, ahead)
        } else {
            Self::Forward(dbi.range(txn, &bounds)?, ahead)
        })
    }
}

impl<'t> Iterator for Rows<'t> {
    type Item = Result<Row<'t>>;

    // The next row of a leaf takes the fast path, inlined. Everything else is a call, so that its
    // result does not pass through memory on the fast path.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if let AnyCursor::Pages(cursor) = &mut self.cursor
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

/// The rest of a scan.
struct Remaining {
    left: u64,
    last: usize,
    filter: Filter,
}

impl Remaining {
    /// Calls a closure with rows of checked pages until it returns false. Returns whether it did.
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
            let flow = self.visit_row(key, value, visit)?;
            enough = matches!(flow, ScanFlow::Stopped);
            Ok(matches!(flow, ScanFlow::Continue))
        })?;
        Ok(enough)
    }

    /// Calls a closure with rows of checked pages until it accepts one.
    fn next_of_pages<'t>(
        &mut self,
        cursor: &mut Cursor<'t>,
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<bool> {
        while self.left > 0 {
            let Some((key, value)) = cursor.next_row()? else { break };
            match self.visit_row(key, value, visit)? {
                ScanFlow::Stopped => return Ok(true),
                ScanFlow::AtEnd => break,
                ScanFlow::Continue => {}
            }
        }
        Ok(false)
    }

    /// Calls a closure with rows of LMDB's cursor until it returns false. Returns whether it did.
    fn run<'t>(
        &mut self,
        cursor: &mut impl Iterator<Item = heed::Result<Row<'t>>>,
        ahead: &mut Option<Precheck<'t>>,
        shared: &Shared,
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<bool> {
        while self.left > 0 {
            let (key, value) = match cursor.next() {
                Some(Ok(row)) => row,
                Some(Err(error)) => return Err(shared.environment.error("scan", error)),
                None => {
                    ahead.as_mut().map_or(Ok(()), Precheck::finish)?;
                    break;
                }
            };
            ahead.as_mut().map_or(Ok(()), |ahead| ahead.advance_past(key))?;
            match self.visit_row(key, value, visit)? {
                ScanFlow::Stopped => return Ok(true),
                ScanFlow::AtEnd => break,
                ScanFlow::Continue => {}
            }
        }
        Ok(false)
    }

    /// Calls a closure with a row, if the filter does not remove it.
    #[inline(always)]
    fn visit_row<'t>(
        &mut self,
        key: &'t [u8],
        mut value: &'t [u8],
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<ScanFlow> {
        let is_last = key.as_ptr().addr() == self.last;
        if let Some(now_ms) = self.filter.now_ms {
            match unexpired_value(value, now_ms)? {
                Some(found) => value = found,
                None => return Ok(if is_last { ScanFlow::AtEnd } else { ScanFlow::Continue }),
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
            false => ScanFlow::Stopped,
            true if self.left == 0 => ScanFlow::AtEnd,
            true => ScanFlow::Continue,
        })
    }
}

/// How a scan continues after a row.
enum ScanFlow {
    /// The closure ended the scan.
    Stopped,
    /// The row was the last one.
    AtEnd,
    Continue,
}

/// Returns the value of a row of a stamped table; `None` if it has expired.
#[inline]
fn unexpired_value(row: &[u8], now_ms: u64) -> Result<Option<&[u8]>> {
    let (stamp, value) = Stamp::split(row)?;
    Ok(stamp.is_live_at(now_ms).then_some(value))
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("left", &self.left).finish_non_exhaustive()
    }
}
