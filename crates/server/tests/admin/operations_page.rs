//! The page of operations tells of every metric there is, and of no other.

use crate::scrape::parse;
use crate::serving::{get, serve};
use std::collections::BTreeMap;

#[test]
fn the_page_lists_all_metrics() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, table) = page.split_once("| metric | type | labels | meaning |").expect("a table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed: BTreeMap<_, _> = rows
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`').to_owned(), cells[2].to_owned())
        })
        .collect();
    let families = parse(&get(&serve(1), "/metrics", "*/*").1);
    let there: BTreeMap<_, _> =
        families.into_iter().map(|(name, family)| (name, family.kind)).collect();
    assert_eq!(listed, there);
}
