//! Every row of `testdata/store/ranges.csv`, with every kind of scan.

use crate::Case;
use nuthatch_store::{Range, Read, Scan};

const TABLE: &str = include_str!("../../../../testdata/store/ranges.csv");
const KEYS: [&str; 6] = ["b", "ba", "bb", "d", "da", "f"];

fn range(start: &str, end: &str) -> Range {
    if let Some(prefix) = start.strip_suffix('*') {
        return Range::prefix(prefix);
    }
    let range = Range::all();
    let range = match start.split_at_checked(1) {
        Some(("[", key)) => range.from(key),
        Some(("(", key)) => range.after(key),
        _ => range,
    };
    match end.split_at_checked(end.len().saturating_sub(1)) {
        Some((key, "]")) => range.to(key),
        Some((key, ")")) => range.before(key),
        _ => range,
    }
}

#[test]
fn every_combination_of_bounds_selects_what_the_table_says() {
    let case = Case::new();
    let table = case.store.table("keys").expect("a table");
    case.store
        .update(|txn| KEYS.iter().try_for_each(|key| txn.put(&table, key.as_bytes(), b"value")))
        .expect("rows");
    let mut rows = 0;
    for line in TABLE.lines().skip(1) {
        let columns: Vec<_> = line.split(',').collect();
        let [start, end, direction, limit, expected] = columns[..] else {
            panic!("five columns: {line}");
        };
        let range = range(start, end);
        let mut scan = Scan::new(range.clone());
        if direction == "backward" {
            scan = scan.reverse();
        }
        if !limit.is_empty() {
            scan = scan.limit(limit.parse().expect("a number"));
        }
        let txn = case.store.read().expect("a transaction");
        let found: Vec<_> = txn
            .scan(&table, &scan)
            .expect("a scan")
            .map(|row| String::from_utf8(row.expect("a row").0.to_vec()).expect("text"))
            .collect();
        assert_eq!(found.join(" "), expected, "{line}");
        if limit.is_empty() {
            assert_eq!(txn.count(&table, &range).expect("a count"), found.len() as u64, "{line}");
            for key in KEYS {
                let inside = found.iter().any(|found| found == key);
                assert_eq!(range.contains(key.as_bytes()), inside, "{line}: {key}");
            }
        }
        rows += 1;
    }
    assert!(rows > 700, "{rows} rows are not all");
}
