//! Conversion of keyword arguments into bounds, order and limits of scans, with the names of the
//! command line.

use crate::convert::KeywordArguments;
use crate::failure::Failure;
use nuthatch_store::{Range, Scan};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Takes the bounds of a range: `from_` or `after`, `to` or `before`, and `prefix`.
pub(crate) fn range(py: Python<'_>, arguments: &KeywordArguments<'_>) -> PyResult<Range> {
    let both = |one: &str, other: &str| {
        let message = format!("expected one of {one} and {other}, found both");
        Err(Failure::argument(message).raise(py))
    };
    let mut range = match arguments.key("prefix")? {
        Some(prefix) => Range::prefix(prefix),
        None => Range::all(),
    };
    match (arguments.key("from_")?, arguments.key("after")?) {
        (Some(_), Some(_)) => return both("from_", "after"),
        (Some(from), None) => range = range.and(&Range::all().from(from)),
        (None, Some(after)) => range = range.and(&Range::all().after(after)),
        (None, None) => {}
    }
    match (arguments.key("to")?, arguments.key("before")?) {
        (Some(_), Some(_)) => return both("to", "before"),
        (Some(to), None) => range = range.and(&Range::all().to(to)),
        (None, Some(before)) => range = range.and(&Range::all().before(before)),
        (None, None) => {}
    }
    Ok(range)
}

/// Converts the bounds of a call that has no other keyword arguments.
pub(crate) fn range_of(
    py: Python<'_>,
    call: &'static str,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Range> {
    let arguments = KeywordArguments::new(call, keywords);
    let range = range(py, &arguments)?;
    arguments.finish()?;
    Ok(range)
}

/// Options of a scan, for stores of both kinds.
#[derive(Clone, Debug)]
pub(crate) struct ScanOptions {
    pub(crate) range: Range,
    pub(crate) reverse: bool,
    pub(crate) limit: Option<u64>,
    pub(crate) keys_only: bool,
    pub(crate) batch_rows: Option<usize>,
    pub(crate) batch_bytes: Option<usize>,
}

impl ScanOptions {
    /// Takes the options of a scan. Leaves other keyword arguments.
    pub(crate) fn take(py: Python<'_>, arguments: &KeywordArguments<'_>) -> PyResult<Self> {
        Ok(Self {
            range: range(py, arguments)?,
            reverse: arguments.flag("reverse")?,
            limit: arguments.take("limit")?,
            keys_only: arguments.flag("keys_only")?,
            batch_rows: arguments.take("batch_rows")?,
            batch_bytes: arguments.take("batch_bytes")?,
        })
    }

    /// Converts the options of a scan call that has no other keyword arguments.
    pub(crate) fn of(
        py: Python<'_>,
        call: &'static str,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let arguments = KeywordArguments::new(call, keywords);
        let options = Self::take(py, &arguments)?;
        arguments.finish()?;
        Ok(options)
    }

    /// Returns the scan of a store in this process.
    pub(crate) fn scan(&self) -> Scan {
        let mut scan = Scan::new(self.range.clone()).limit(self.limit.unwrap_or(u64::MAX));
        if self.reverse {
            scan = scan.reverse();
        }
        if self.keys_only {
            scan = scan.keys_only();
        }
        let rows = self.batch_rows.unwrap_or(Scan::BATCH_ROWS);
        let bytes = self.batch_bytes.unwrap_or(Scan::BATCH_BYTES);
        scan.batch_rows(rows).batch_bytes(bytes)
    }

    /// Returns the scan of a server.
    pub(crate) fn remote_scan(&self) -> nuthatch_rpc::Scan {
        let scan = nuthatch_rpc::Scan::new(self.range.clone());
        let mut scan = scan.limit(self.limit.unwrap_or(u64::MAX));
        if self.reverse {
            scan = scan.reverse();
        }
        if self.keys_only {
            scan = scan.keys_only();
        }
        match self.batch_bytes {
            Some(bytes) => scan.batch_bytes(bytes as u64),
            None => scan,
        }
    }

    /// Returns the rest of the scan after a number of rows, the last of which had the key `last`.
    pub(crate) fn after(self, rows: usize, last: &[u8]) -> Self {
        let limit = self.limit.map(|limit| limit.saturating_sub(rows as u64));
        let range = if self.reverse { self.range.before(last) } else { self.range.after(last) };
        Self { range, limit, ..self }
    }
}
