//! Compares `docs/formats/store.md` with the code.

use crate::changes::layout as change;
use crate::stamp::layout as stamp;
use crate::table::system_tables::layout as system_tables;
use crate::write::expiry::layout as expiry;
use nuthatch_testing::page::{self, Rows, table_under};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/formats/store.md");

fn rows(heading: &str) -> Rows {
    table_under(PAGE, heading)
}

/// Returns the offsets of fields under a heading.
fn offsets(heading: &str) -> BTreeMap<String, usize> {
    page::offsets(&rows(heading))
}

fn expect(found: &BTreeMap<String, usize>, expected: &[(&str, usize)]) {
    let expected = expected.iter().map(|(name, offset)| ((*name).to_owned(), *offset));
    assert_eq!(*found, expected.collect());
}

#[test]
fn offsets_of_rows_and_records_are_those_of_the_page() {
    expect(
        &offsets("A row of a stamped table"),
        &[("version", stamp::VERSION), ("expiry", stamp::EXPIRY), ("value", stamp::LEN)],
    );
    expect(
        &offsets("A change"),
        &[
            ("kind", change::KIND),
            ("name_len", change::NAME_LEN),
            ("key_len", change::KEY_LEN),
            ("transaction", change::TRANSACTION),
            ("expiry", change::EXPIRY),
            ("name, key, value", change::HEADER_LEN),
        ],
    );
    expect(
        &offsets("A time of expiry"),
        &[("name_len", expiry::NAME_LEN), ("name, key", expiry::NAME)],
    );
}

#[test]
fn names_and_kinds_are_those_of_the_page() {
    let first = |heading: &str| -> Vec<String> {
        rows(heading).into_iter().map(|row| row[0].trim_matches('`').to_owned()).collect()
    };
    assert_eq!(
        first("Tables of the store"),
        [system_tables::SETTINGS, system_tables::CHANGES, system_tables::EXPIRY]
    );
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let settings =
        [system_tables::FORMAT_KEY, system_tables::SEQUENCE_KEY, system_tables::KEEP_KEY].map(text);
    let table = text(system_tables::TABLE_PREFIX) + "NAME";
    assert_eq!(first("Settings"), [&settings[..], &[table]].concat());
    let kinds =
        format!("{} put, {} delete, {} expire", change::PUT, change::DELETE, change::EXPIRE);
    assert_eq!(rows("A change")[0][3], kinds);
    assert!(rows("Settings")[0][1].starts_with(&format!("{}:", system_tables::FORMAT)));
    assert!(rows("Settings")[3][1].contains(&format!("; {}: its rows", system_tables::STAMPED)));
    assert!(PAGE.contains(&format!("A table name has 1 to {} bytes", crate::MAX_NAME_LEN)));
}
