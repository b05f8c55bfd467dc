//! Compares `docs/formats/chunks.md` with the code.

use crate::layout::{BLOCKS, CONTENT, KIND, METADATA, NAMED, blocks, metadata};
use nuthatch_testing::page::{Rows, table_under};

const PAGE: &str = include_str!("../../../docs/formats/chunks.md");

/// Returns the cells of the table under a heading.
fn rows(heading: &str) -> Rows {
    table_under(PAGE, heading)
}

#[test]
fn labels_are_those_of_the_page() {
    let kinds: Vec<_> = rows("Kinds").iter().map(|row| row[0].clone()).collect();
    assert_eq!(kinds, [NAMED, BLOCKS, CONTENT, METADATA].map(|kind| kind.to_string()));
    let rows = rows("The label of blocks");
    let fields: Vec<_> =
        rows.iter().map(|row| (&row[2][..], row[0].parse::<usize>().expect("an offset"))).collect();
    let expected = [
        ("kind", KIND),
        ("block_len", blocks::BLOCK_LEN),
        ("object_len", blocks::OBJECT_LEN),
        ("address_len", blocks::ADDRESS_LEN),
        ("address, validator", blocks::ADDRESS),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn fields_of_metadata_are_those_of_the_page() {
    let fields: Vec<_> = rows("Metadata")
        .iter()
        .map(|row| (row[1].clone(), row[0].parse::<u8>().expect("a tag")))
        .collect();
    let expected = [
        ("key", metadata::KEY),
        ("checked", metadata::CHECKED),
        ("ranges", metadata::RANGES),
        ("etag", metadata::ETAG),
        ("last_modified", metadata::LAST_MODIFIED),
        ("content_type", metadata::CONTENT_TYPE),
        ("modified", metadata::MODIFIED),
        ("stale_if_error", metadata::STALE_IF_ERROR),
    ];
    assert_eq!(fields, expected.map(|(name, tag)| (name.to_owned(), tag)));
}
