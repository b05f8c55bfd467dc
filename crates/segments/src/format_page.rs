//! Compares `docs/formats/segments.md` with the code.

use crate::layout::{
    FETCH_LOCKS_NAME, INDEX_NAME, INDEX_NEW, PINS_NAME, PINS_NEW, SETTINGS_NAME, SETTINGS_NEW,
    index, pins, record, segment, settings, slot, word,
};
use nuthatch_testing::page::{self, Rows, table_under};

const PAGE: &str = include_str!("../../../docs/formats/segments.md");

/// Returns the rows of the table under a heading.
fn rows(heading: &str) -> Rows {
    table_under(PAGE, heading)
}

fn expect(heading: &str, expected: &[(&str, usize)]) {
    let found = page::offsets(&rows(heading));
    let expected = expected.iter().map(|(name, offset)| ((*name).to_owned(), *offset));
    assert_eq!(found, expected.collect(), "{heading}");
}

#[test]
fn fields_of_header_and_settings_have_the_offsets_of_the_page() {
    expect(
        "The header of the index",
        &[
            ("magic", index::MAGIC_AT),
            ("version", index::VERSION),
            ("slots", index::SLOTS),
            ("sets", index::SETS),
            ("grown", index::GROWN),
            ("family", index::FAMILY),
            ("check", index::CHECK),
            ("retired", index::RETIRED),
            ("dirty", index::DIRTY),
            ("next", index::NEXT),
            ("next_eviction_order", index::NEXT_EVICTION_ORDER),
            ("limit", index::LIMIT),
            ("min_free", index::MIN_FREE),
            ("parts", index::PARTS),
            ("shared", index::SHARED),
            ("settings_check", index::SETTINGS_CHECK),
            ("evicted", index::EVICTED),
            ("moved", index::MOVED),
            ("displaced", index::DISPLACED),
            ("first_own", index::FIRST_OWN),
        ],
    );
    expect(
        "The settings",
        &[
            ("magic", settings::MAGIC_AT),
            ("version", settings::VERSION),
            ("limit", settings::LIMIT),
            ("min_free", settings::MIN_FREE),
            ("parts", settings::PARTS),
            ("shared", settings::SHARED),
            ("check", settings::CHECK),
        ],
    );
}

#[test]
fn fields_of_rows_and_files_have_the_offsets_of_the_page() {
    expect(
        "A row of the table",
        &[
            ("number", slot::NUMBER),
            ("file", slot::FILE),
            ("charged", slot::CHARGED),
            ("state", slot::STATE),
            ("eviction_order", slot::EVICTION_ORDER),
            ("check", slot::CHECK),
        ],
    );
    expect(
        "The header of a segment",
        &[
            ("magic", segment::MAGIC_AT),
            ("version", segment::VERSION),
            ("number", segment::NUMBER),
            ("salt", segment::SALT),
            ("boot", segment::BOOT),
            ("check", segment::CHECK),
        ],
    );
    expect(
        "The head of a record",
        &[
            ("magic", record::MAGIC_AT),
            ("head_len", record::HEAD_LEN),
            ("check", record::CHECK),
            ("name", record::NAME),
            ("first", record::FIRST),
            ("expiry", record::EXPIRY),
            ("data_len", record::DATA_LEN),
            ("parts", record::PARTS),
            ("label_len", record::LABEL_LEN),
            ("label", record::LABEL),
        ],
    );
    expect("The list of pins", &[("magic", 0), ("check", pins::CHECK), ("names", pins::NAMES)]);
}

#[test]
fn bits_of_a_word_are_those_of_the_page() {
    let bits = |from: u32, len: u32| format!("{from} to {}", from + len - 1);
    let found: Vec<_> = rows("A word of the index").into_iter().map(|row| row[0].clone()).collect();
    let expected = [
        bits(0, word::OFFSET_BITS),
        bits(word::SLOT_SHIFT, word::SLOT_BITS),
        bits(word::TAG_SHIFT, word::TAG_BITS),
        bits(word::AWAY_SHIFT, word::AWAY_BITS),
        bits(word::USES_SHIFT, word::USES_BITS),
    ];
    assert_eq!(found, expected);
}

#[test]
fn names_magics_and_states_are_those_of_the_page() {
    let names: Vec<_> =
        rows("Files").into_iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    let segment = crate::folder::names::segment_name(1);
    assert_eq!(
        names,
        [
            SETTINGS_NAME,
            SETTINGS_NEW,
            INDEX_NAME,
            INDEX_NEW,
            &segment,
            PINS_NAME,
            PINS_NEW,
            FETCH_LOCKS_NAME,
        ]
    );
    let magic = |heading: &str, expected: &[u8]| {
        let text = format!("`{}`", String::from_utf8_lossy(expected));
        assert_eq!(rows(heading)[0][3], text, "{heading}");
    };
    magic("The settings", settings::MAGIC);
    magic("The header of the index", index::MAGIC);
    magic("The header of a segment", segment::MAGIC);
    magic("The list of pins", pins::MAGIC);
    assert_eq!(rows("The head of a record")[0][3], format!("`{:X}`", record::MAGIC));
    assert!(PAGE.starts_with(&format!("# A folder of segments, version {}", index::VERSION_NOW)));
    let state = format!(
        "{} free, {} writing, {} sealed; plus {} if the segment is in the main eviction queue (it \
         has records that were moved, or was requeued, because they were used or pinned), plus {} \
         if not all of its parts",
        slot::FREE,
        slot::WRITING,
        slot::SEALED,
        slot::MAIN_QUEUE,
        slot::PARTLY_INDEXED
    );
    assert!(rows("A row of the table")[3][3].starts_with(&state));
    let sizes = format!("`{} + {} * slots`", index::HEADER_LEN, slot::LEN);
    assert!(PAGE.contains(&sizes) && PAGE.contains(&format!("sets of {} bytes", index::SET_LEN)));
    assert!(PAGE.contains(&format!("{} point to parts", index::WAYS)));
}
