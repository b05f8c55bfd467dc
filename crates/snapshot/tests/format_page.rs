//! Compares the tables of `docs/formats/snapshot.md` with the constants in the code.

use nuthatch_snapshot::ValueType;
use nuthatch_snapshot::layout::{
    additional, directory, flags, header, limits, line, manifest, manifest_entry, metadata, record,
};
use nuthatch_testing::page::{self, Rows, table_with_header};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/formats/snapshot.md");

fn table(header: &str, number: usize) -> Rows {
    table_with_header(PAGE, header, number)
}

/// Returns the offset of each field in field table `number`.
fn offsets(number: usize) -> BTreeMap<String, usize> {
    page::offsets(&table("| offset | type | field | meaning |", number))
}

fn expect(found: &BTreeMap<String, usize>, expected: &[(&str, usize)]) {
    let expected = expected.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect();
    assert_eq!(*found, expected);
}

#[test]
fn the_header_table_agrees_with_the_code() {
    expect(
        &offsets(0),
        &[
            ("magic", header::MAGIC),
            ("version_major", header::VERSION_MAJOR),
            ("version_minor", header::VERSION_MINOR),
            ("header_len", header::HEADER_LEN),
            ("file_len", header::FILE_LEN),
            ("seed", header::SEED),
            ("entries", header::ENTRIES),
            ("partition_bits", header::PARTITION_BITS),
            ("lines_per_partition", header::LINES_PER_PARTITION),
            ("max_probe", header::MAX_PROBE),
            ("flags", header::FLAGS),
            ("dictionary", header::DICTIONARY),
            ("directory", header::DIRECTORY),
            ("index", header::INDEX),
            ("data", header::DATA),
            ("dictionary_hash", header::DICTIONARY_HASH),
            ("directory_hash", header::DIRECTORY_HASH),
            ("key_bytes", header::KEY_BYTES),
            ("value_bytes", header::VALUE_BYTES),
            ("stored_value_bytes", header::STORED_VALUE_BYTES),
            ("shared_entries", header::SHARED_ENTRIES),
            ("compressed_entries", header::COMPRESSED_ENTRIES),
            ("entries_by_type", header::ENTRIES_BY_TYPE),
            ("index_kind", header::INDEX_KIND),
            ("shard", header::SHARD),
            ("shards", header::SHARDS),
            ("additional_count", header::ADDITIONAL_COUNT),
            ("additional", header::ADDITIONAL),
            ("reserved", header::RESERVED),
            ("header_hash", header::HASH),
        ],
    );
    assert!(PAGE.contains(&format!("a header of {} bytes", header::LEN)));
}

#[test]
fn the_tables_of_additional_sections_and_metadata_agree_with_the_code() {
    let fields = [("kind", additional::KIND), ("required", additional::REQUIRED)];
    let rest = [("section", additional::OFFSET), ("checksum", additional::CHECKSUM)];
    expect(&offsets(1), &[fields, rest].concat());
    assert_eq!(additional::LENGTH, additional::OFFSET + 8);
    let kinds = table("| kind | section |", 0);
    assert_eq!(kinds[0][0], additional::METADATA.to_string());
    let fields = [("name_len", metadata::NAME_LEN), ("value_len", metadata::VALUE_LEN)];
    expect(&offsets(2), &fields);
}

#[test]
fn the_tables_of_sets_agree_with_the_code() {
    expect(
        &offsets(5),
        &[
            ("magic", manifest::MAGIC),
            ("version_major", manifest::VERSION_MAJOR),
            ("version_minor", manifest::VERSION_MINOR),
            ("header_len", manifest::HEADER_LEN),
            ("file_len", manifest::FILE_LEN),
            ("seed", manifest::SEED),
            ("entries", manifest::ENTRIES),
            ("shards", manifest::SHARDS),
            ("flags", manifest::FLAGS),
            ("metadata_len", manifest::METADATA_LEN),
            ("table_hash", manifest::TABLE_HASH),
            ("metadata_hash", manifest::METADATA_HASH),
            ("reserved", manifest::RESERVED),
            ("header_hash", manifest::HASH),
        ],
    );
    expect(
        &offsets(6),
        &[
            ("file_len", manifest_entry::FILE_LEN),
            ("entries", manifest_entry::ENTRIES),
            ("header_hash", manifest_entry::HEADER_HASH),
        ],
    );
    let lens = [("a header of", manifest::LEN), ("an entry of", manifest_entry::LEN)];
    for (what, len) in lens {
        assert!(PAGE.contains(&format!("{what} {len} bytes")), "{what}");
    }
}

#[test]
fn the_directory_and_line_tables_agree_with_the_code() {
    expect(
        &offsets(3),
        &[
            ("data_offset", directory::DATA_OFFSET),
            ("data_len", directory::DATA_LEN),
            ("index_hash", directory::INDEX_HASH),
            ("data_hash", directory::DATA_HASH),
        ],
    );
    expect(
        &offsets(4),
        &[
            ("fingerprints", line::FINGERPRINTS),
            ("offsets", line::OFFSETS),
            ("shift", line::SHIFT),
            ("overflow", line::OVERFLOW),
            ("base", line::BASE),
        ],
    );
}

#[test]
fn flags_tags_and_types_agree_with_the_code() {
    let flag = |name: &str| {
        let rows = table("| flag | meaning |", 0);
        let row = rows.iter().find(|row| row[1].contains(name)).expect("a flag of that meaning");
        row[0].parse::<u32>().expect("a number")
    };
    assert_eq!(flag("compressed"), flags::ZSTD);
    assert_eq!(flag("dictionary section"), flags::DICTIONARY);
    assert_eq!(flag("refer"), flags::SHARED);
    let tags = table("| bits of the tag | meaning |", 0);
    for (bit, meaning) in [
        (record::LONG, "long"),
        (record::SHARED, "shared"),
        (record::ZSTD, "zstd"),
        (record::RESERVED, "zero"),
    ] {
        let row = tags.iter().find(|row| row[0].contains(&format!("({bit})"))).expect("the bit");
        assert!(row[1].contains(meaning), "{row:?}");
    }
    let types = table("| code | type | alignment | stored as |", 0);
    assert_eq!(types.len(), ValueType::ALL.len());
    for (row, value_type) in types.iter().zip(ValueType::ALL) {
        assert_eq!(row[0], value_type.code().to_string());
        assert_eq!(row[1], value_type.name());
    }
}

#[test]
fn limits_agree_with_the_code() {
    let limit = |what: &str| {
        let rows = table("| limit | maximum |", 0);
        rows.iter().find(|row| row[0] == what).expect("the limit").clone()[1].clone()
    };
    assert!(limit("key").starts_with("65,535 "));
    assert_eq!(limits::MAX_KEY_LEN, 65_535);
    assert!(limit("stored value").contains("2^32") && limits::MAX_VALUE_LEN == 1 << 32);
    assert!(limit("file").contains("2^48") && limits::MAX_FILE_LEN == 1 << 48);
    assert!(limit("metadata").contains("1 MiB; a name has 1 to 255"));
    assert_eq!((limits::MAX_METADATA_LEN, limits::MAX_METADATA_NAME_LEN), (1 << 20, 255));
    assert_eq!(limit("additional sections"), additional::MAX_SECTIONS.to_string());
    assert!(limit("shards of a set") == "65,536" && limits::MAX_SHARDS == 65_536);
    assert!(limit("partitions").contains(&format!("2^{}", limits::MAX_PARTITION_BITS)));
    assert_eq!(limit("lines that a lookup reads"), (limits::MAX_PROBE + 1).to_string());
    let zeros = format!("at least {} zeros", record::MAX_SHORT_LEN);
    assert!(PAGE.replace('\n', " ").contains(&zeros));
}
