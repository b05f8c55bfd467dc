//! The rows of a scan, one after the other, where they lie.

use crate::environment::Bare;
use crate::error::Result;
use crate::range::Bounds;
use crate::read::View;
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
    keys_only: bool,
    /// The time for a stamped table.
    now_ms: Option<u64>,
    shared: &'t Shared,
}

enum Steps<'t> {
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
            keys_only: scan.keys_only,
            now_ms,
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
            rows.steps = Steps::new(bare, view.txn, bounds, scan.reverse).map_err(error)?;
        }
        Ok(rows)
    }

    /// The next row as it lies in the table.
    #[inline]
    fn step(&mut self) -> Option<heed::Result<Row<'t>>> {
        match &mut self.steps {
            Steps::Forward(steps) => steps.next(),
            Steps::Backward(steps) => steps.next(),
            Steps::None => None,
        }
    }

    #[cold]
    fn end(&mut self) {
        self.left = 0;
        self.steps = Steps::None;
    }

    #[cold]
    fn failed(&mut self, error: heed::Error) -> crate::Error {
        self.end();
        self.shared.environment.error("scan", error)
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

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            let (key, row) = match self.step() {
                Some(Ok(row)) => row,
                Some(Err(error)) => return Some(Err(self.failed(error))),
                None => {
                    self.end();
                    return None;
                }
            };
            let is_last = key.as_ptr().addr() == self.last;
            let value = match self.now_ms.map(|now_ms| live(row, now_ms)).transpose() {
                Ok(value) => value.unwrap_or(Some(row)),
                Err(error) => {
                    self.end();
                    return Some(Err(error));
                }
            };
            if is_last {
                self.left = u64::from(value.is_some());
            }
            if let Some(value) = value {
                self.left -= 1;
                return Some(Ok((key, if self.keys_only { &[] } else { value })));
            }
        }
        None
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
