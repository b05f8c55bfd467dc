//! Compares the metrics of `docs/operations.md` with those of a server.

use crate::scrape::parse;
use crate::serving::{get, serve_in_cluster, serve_with_disk};
use nuthatch_testing::page::table_with_header;
use std::collections::BTreeMap;

#[test]
fn the_page_lists_all_metrics() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let listed: BTreeMap<_, _> =
        table_with_header(&page, "| metric | type | labels | meaning |", 0)
            .into_iter()
            .map(|row| (row[0].trim_matches('`').to_owned(), row[1].clone()))
            .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let servers = [serve_with_disk(folder.path()), serve_in_cluster()];
    let families = servers.iter().flat_map(|server| parse(&get(server, "/metrics", "*/*").1));
    let there: BTreeMap<_, _> = families.map(|(name, family)| (name, family.kind)).collect();
    assert_eq!(listed, there);
}
