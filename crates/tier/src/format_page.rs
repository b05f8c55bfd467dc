//! Compares `docs/formats/tier.md` with the code.

use crate::layout::{
    BLOCK, ITEMS_PREFIX, LOCK_NAME, MANIFEST_NAME, MANIFEST_NEW, MAX_KEY_LEN, MAX_VALUE_LEN,
    REMOVED_NEW, REMOVED_PREFIX, UNIT, VERSION, batch, entry, footer, header, manifest, record,
    removal, removed,
};
use nuthatch_testing::page::{self, table_under};

const PAGE: &str = include_str!("../../../docs/formats/tier.md");

/// Compares a table of offsets, and the length of each field with the offset of the next one.
fn expect(heading: &str, expected: &[(&str, usize)]) {
    let found = page::offsets(&table_under(PAGE, heading));
    let expected = expected.iter().map(|(name, offset)| ((*name).to_owned(), *offset));
    assert_eq!(found, expected.collect(), "{heading}");
}

fn magic(heading: &str, expected: &[u8]) {
    let text = format!("`{}`", String::from_utf8_lossy(expected).replace('\0', "\\0"));
    assert_eq!(table_under(PAGE, heading)[0][3], text, "{heading}");
}

#[test]
fn fields_of_manifest_and_headers_have_the_offsets_of_the_page() {
    let fields = [
        ("magic", manifest::MAGIC_AT),
        ("version", manifest::VERSION_AT),
        ("state", manifest::STATE),
        ("salt", manifest::SALT),
        ("hash_seed", manifest::HASH_SEED),
        ("boot", manifest::BOOT),
        ("check", manifest::CHECK),
    ];
    expect("The manifest", &fields);
    magic("The manifest", manifest::MAGIC);
    let states = format!(
        "{} open, {} closed, {} lost power, {} outdated",
        manifest::OPEN,
        manifest::CLOSED,
        manifest::LOST_POWER,
        manifest::OUTDATED
    );
    assert_eq!(table_under(PAGE, "The manifest")[2][3], states);
    let fields = [
        ("magic", header::MAGIC_AT),
        ("version", header::VERSION_AT),
        ("number", header::NUMBER),
        ("salt", header::SALT),
        ("folder_salt", header::FOLDER_SALT),
        ("created", header::CREATED),
        ("check", header::CHECK),
    ];
    expect("The header of an item file", &fields);
    magic("The header of an item file", header::MAGIC);
    let fields = [
        ("magic", batch::MAGIC_AT),
        ("salt", batch::SALT),
        ("sequence", batch::SEQUENCE),
        ("len", batch::LEN),
        ("used", batch::USED),
        ("records", batch::RECORDS),
        ("data_check", batch::DATA_CHECK),
        ("check", batch::CHECK),
    ];
    expect("The header of a batch", &fields);
    magic("The header of a batch", batch::MAGIC);
}

#[test]
fn fields_of_records_and_footers_have_the_offsets_of_the_page() {
    let fields = [
        ("check", record::CHECK),
        ("hash", record::HASH),
        ("value_len", record::VALUE_LEN),
        ("key_len", record::KEY_LEN),
        ("kind", record::KIND),
        ("database", record::DATABASE),
        ("fields", record::FIELDS),
    ];
    expect("A record", &fields);
    let fields = [("hash", entry::HASH), ("location", entry::LOCATION), ("expiry", entry::EXPIRY)];
    expect("The directory", &fields);
    let fields = [
        ("magic", footer::MAGIC_AT),
        ("number", footer::NUMBER),
        ("salt", footer::SALT),
        ("file_len", footer::FILE_LEN),
        ("directory", footer::DIRECTORY),
        ("records", footer::RECORDS),
        ("batches", footer::BATCHES),
        ("live_bytes", footer::LIVE_BYTES),
        ("last_expiry", footer::LAST_EXPIRY),
        ("sealed", footer::SEALED),
        ("directory_check", footer::DIRECTORY_CHECK),
        ("check", footer::CHECK),
    ];
    expect("The footer", &fields);
    magic("The footer", footer::MAGIC);
}

#[test]
fn the_removal_log_is_as_on_the_page() {
    let heading = "The header of a file of the removal log";
    let fields = [
        ("magic", removed::MAGIC_AT),
        ("version", removed::VERSION_AT),
        ("number", removed::NUMBER),
        ("salt", removed::SALT),
        ("folder_salt", removed::FOLDER_SALT),
        ("bound", removed::BOUND),
        ("previous_end", removed::PREVIOUS_END),
        ("previous_chain", removed::PREVIOUS_CHAIN),
        ("check", removed::CHECK),
    ];
    expect(heading, &fields);
    magic(heading, removed::MAGIC);
    let rows = table_under(PAGE, "An entry of the removal log");
    let (id, check) = (removal::ID_BITS, removal::CHECK_BITS);
    assert_eq!(rows[0][0], format!("0 to {}", id - 1));
    assert_eq!(rows[1][0], format!("{id} to {}", id + check - 1));
    assert_eq!(rows[2][0], format!("{} to 63", id + check));
    let (record, all_before) = (removal::RECORD, removal::ALL_BEFORE);
    assert!(rows[2][2].starts_with(&format!("{record}: the record with")));
    assert!(rows[2][2].contains(&format!("; {all_before}: all records")));
    assert!(PAGE.contains(&format!("The mark is at offset {}, and", removed::MARK)));
    assert!(PAGE.contains(&format!("Each one is a number of {} bytes:", removal::LEN)));
}

#[test]
fn names_versions_and_limits_are_those_of_the_page() {
    let names: Vec<_> = table_under(PAGE, "Files")
        .into_iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    let items = crate::folder::items_name(1);
    let removed = crate::folder::removed_name(1);
    assert_eq!(names, [MANIFEST_NAME, MANIFEST_NEW, LOCK_NAME, &items, &removed, REMOVED_NEW]);
    assert!(items.starts_with(ITEMS_PREFIX) && removed.starts_with(REMOVED_PREFIX));
    assert!(PAGE.starts_with(&format!("# A folder of item files, version {VERSION}\n")));
    assert!(PAGE.contains(&format!("A block has {BLOCK} bytes.")));
    assert!(PAGE.contains(&format!("A record begins at a multiple of {UNIT}.")));
    let limits: Vec<_> =
        table_under(PAGE, "Limits").into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(limits[3], "65,535 bytes");
    assert_eq!(MAX_KEY_LEN, 65_535);
    assert_eq!(limits[4], format!("{} MiB", MAX_VALUE_LEN >> 20));
    let kind = &table_under(PAGE, "A record")[4][3];
    let flags = [
        (record::HAS_EXPIRY, "has expiry"),
        (record::HAS_CAS, "has cas"),
        (record::HAS_CLIENT_FLAGS, "has client flags"),
        (record::IS_COMPRESSED, "the value is compressed"),
    ];
    for (flag, text) in flags {
        assert!(kind.contains(&format!("bit {}: {text}", flag.trailing_zeros())), "{text}");
    }
}
