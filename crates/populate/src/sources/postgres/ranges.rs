//! Ranges of a column of integers, which are read at the same time.

use super::connect::{Connection, DIALECT};
use super::copy::Columns;
use crate::error::{Error, Result};
use crate::job::Source;
use std::collections::VecDeque;

/// Approximate bytes of the rows of a range, as the planner expects them.
const RANGE_BYTES: u64 = 4 << 20;
const MAX_RANGES: u64 = 100_000;

/// The ranges of a query.
pub(super) struct Ranges {
    /// The queries. Together they have all rows, each once.
    pub(super) queries: VecDeque<String>,
    /// The number of rows of the query.
    pub(super) rows: u64,
}

/// Returns the ranges of a query; `None` if there is only one.
pub(super) fn ranges(
    connection: &Connection,
    (source, query, column): (&Source, &str, &str),
    columns: &Columns,
) -> Result<Option<Ranges>> {
    let fault = |message: String| Error::source(&connection.name, message);
    let position = columns.names.iter().position(|name| name == column);
    let Some(position) = position else {
        return Err(fault(format!("split: expected a column of the query, found \"{column}\"")));
    };
    if !columns.is_int(position) {
        return Err(fault(format!("split: expected a column of integers, found \"{column}\"")));
    }
    let name = DIALECT.name(column);
    let bounds = format!(
        "select min({name})::text || ' ' || max({name})::text || ' ' || count(*)::text \
         from ({query}\n) as source_rows"
    );
    let bounds = connection.first_value(&bounds)?.unwrap_or_default();
    let numbers: Vec<i64> = bounds.split(' ').filter_map(|number| number.parse().ok()).collect();
    // Without a value there are no bounds.
    let [min, max, rows] = numbers[..] else { return Ok(None) };
    let bytes = connection.estimate(query).map_or(0, |(_, bytes)| bytes);
    let wanted = (bytes / RANGE_BYTES).max(source.readers as u64 * 2).min(MAX_RANGES);
    let parts = split(min, max, wanted);
    if parts.len() < 2 {
        return Ok(None);
    }
    let queries = parts.into_iter().enumerate().map(|(at, (first, last))| {
        let nulls = if at == 0 { format!(" or {name} is null") } else { String::new() };
        format!(
            "select * from ({query}\n) as source_rows \
             where {name} between {first} and {last}{nulls}"
        )
    });
    Ok(Some(Ranges { queries: queries.collect(), rows: rows.unsigned_abs() }))
}

/// Splits a range of integers into at most `wanted` ranges, ends included.
fn split(min: i64, max: i64, wanted: u64) -> Vec<(i64, i64)> {
    let len = i128::from(max) - i128::from(min) + 1;
    let count = len.min(i128::from(wanted)).max(1);
    let bound = |at: i128| i128::from(min) + len * at / count;
    let part = |at: i128| (bound(at) as i64, (bound(at + 1) - 1) as i64);
    (0..count).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_each_integer_once() {
        for (min, max, wanted) in
            [(1, 10, 3), (5, 5, 4), (-3, 3, 100), (i64::MIN, i64::MAX, 7), (0, 1, 1)]
        {
            let parts = split(min, max, wanted);
            assert!(parts.len() as u64 <= wanted);
            assert_eq!((parts[0].0, parts[parts.len() - 1].1), (min, max));
            for pair in parts.windows(2) {
                assert_eq!(pair[0].1 + 1, pair[1].0);
            }
        }
    }
}
