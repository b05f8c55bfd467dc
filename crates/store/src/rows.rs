//! The rows of a scan, one after the other, where they lie.

use crate::environment::Bare;
use crate::error::Result;
use crate::file::corrupt;
use crate::leaves::Leaves;
use crate::range::Bounds;
use crate::read::View;
use crate::scan::Scan;
use crate::stamp::Stamp;
use crate::store::Shared;
use crate::table::Table;
use heed::types::Bytes;
use heed::{AnyTls, RoIter, RoRange, RoRevRange, RoTxn};
use std::fmt;
use std::ops::Bound;

/// A key and its value.
pub type Row<'t> = (&'t [u8], &'t [u8]);

/// A scan of fewer rows than this compares keys; a longer one looks its last row up first.
const WORTH_A_LOOKUP: u64 = 16;
/// After so many rows a scan that shows them to a closure goes from leaf to leaf without LMDB.
const WORTH_LEAVES: u64 = 64;

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
    /// Where leaves are found, if they can be.
    tree: Option<Tree<'t>>,
}

/// A named table as a transaction sees it that reads. What other transactions see may have changed,
/// and where the main one has its root is not known to us.
struct Tree<'t> {
    table: Table,
    txn: &'t RoTxn<'t, AnyTls>,
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
            tree: Tree::of(view, table).filter(|_| !scan.reverse && scan.limit > WORTH_LEAVES),
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
        let (shared, filter) = (self.shared, self.filter);
        let mut course = Course { left: self.left, last: self.last, filter };
        let tree = self.tree.take();
        match self.steps {
            Steps::All(steps) => course.run::<false>(steps, tree, shared, visit),
            Steps::Forward(steps) if filter == Filter::NONE => {
                course.run::<false>(steps, tree, shared, visit)
            }
            Steps::Forward(steps) => course.run::<true>(steps, tree, shared, visit),
            Steps::Backward(steps) => course.run::<true>(steps, None, shared, visit),
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
        let mut course = Course { left: self.left, last: self.last, filter: self.filter };
        let mut found = None;
        let mut take = |key, value| {
            found = Some((key, value));
            false
        };
        let walked = match &mut self.steps {
            Steps::All(steps) => course.walk::<true>(steps, u64::MAX, self.shared, &mut take),
            Steps::Forward(steps) => course.walk::<true>(steps, u64::MAX, self.shared, &mut take),
            Steps::Backward(steps) => course.walk::<true>(steps, u64::MAX, self.shared, &mut take),
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

impl<'t> Tree<'t> {
    fn of(view: View<'t>, table: &Table) -> Option<Self> {
        let known = view.is_fixed && !table.name().is_empty();
        known.then(|| Self { table: table.clone(), txn: view.txn })
    }

    /// The rows after one.
    fn leaves(&self, row: Row<'t>, shared: &Shared) -> Option<Leaves<'t>> {
        let name = self.table.name().as_bytes();
        let record = shared.environment.main().get(self.txn, name).ok()??;
        Leaves::after(row, record, &shared.environment)
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

/// What is left to do of a scan.
struct Course {
    left: u64,
    last: usize,
    filter: Filter,
}

/// Where a walk ended.
enum Walked<'t> {
    /// The closure had enough.
    Enough,
    /// There are no more rows.
    Ended,
    /// Here, after as many as were to be walked.
    At(Row<'t>),
}

impl Course {
    /// Shows rows to a closure until it has enough of them. Whether it has. `FILTERED` is false
    /// where the filter does nothing.
    #[inline(always)]
    fn run<'t, const FILTERED: bool>(
        &mut self,
        mut steps: impl Iterator<Item = heed::Result<Row<'t>>>,
        tree: Option<Tree<'t>>,
        shared: &Shared,
        mut visit: impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<bool> {
        if let Some(tree) = tree {
            let walked = self.walk::<FILTERED>(&mut steps, WORTH_LEAVES, shared, &mut visit)?;
            let Walked::At(row) = walked else { return Ok(matches!(walked, Walked::Enough)) };
            if let Some(leaves) = tree.leaves(row, shared) {
                let mut enough = false;
                leaves.visit(&shared.environment, |key, value| {
                    let shown = self.show::<FILTERED>(key, value, &mut visit)?;
                    enough = matches!(shown, Shown::Enough);
                    Ok(matches!(shown, Shown::GoOn))
                })?;
                return Ok(enough);
            }
        }
        let walked = self.walk::<FILTERED>(&mut steps, u64::MAX, shared, &mut visit)?;
        Ok(matches!(walked, Walked::Enough))
    }

    /// Walks so many steps, showing rows to a closure.
    #[inline(always)]
    fn walk<'t, const FILTERED: bool>(
        &mut self,
        steps: &mut impl Iterator<Item = heed::Result<Row<'t>>>,
        most: u64,
        shared: &Shared,
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<Walked<'t>> {
        let mut walked = 0;
        while self.left > 0 {
            let (key, value) = match steps.next() {
                Some(Ok(row)) => row,
                Some(Err(error)) => return Err(shared.environment.error("scan", error)),
                None => break,
            };
            match self.show::<FILTERED>(key, value, visit)? {
                Shown::Enough => return Ok(Walked::Enough),
                Shown::Last => break,
                Shown::GoOn => {}
            }
            walked += 1;
            if walked == most {
                return Ok(Walked::At((key, value)));
            }
        }
        Ok(Walked::Ended)
    }

    /// Shows a row to a closure, if the filter lets it pass.
    #[inline(always)]
    fn show<'t, const FILTERED: bool>(
        &mut self,
        key: &'t [u8],
        mut value: &'t [u8],
        visit: &mut impl FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<Shown> {
        let is_last = key.as_ptr().addr() == self.last;
        if FILTERED {
            if let Some(now_ms) = self.filter.now_ms {
                match live(value, now_ms)? {
                    Some(found) => value = found,
                    None => return Ok(if is_last { Shown::Last } else { Shown::GoOn }),
                }
            }
            if self.filter.keys_only {
                value = &[];
            }
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
