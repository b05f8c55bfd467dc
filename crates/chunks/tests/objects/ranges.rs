//! Each row of `testdata/chunks/ranges.csv`, through every way to read.

use crate::{Case, pattern};
use nuthatch_chunks::{Chunks, Error, Key, Lookup};
use std::ops::Range;

const TABLE: &str = include_str!("../../../../testdata/chunks/ranges.csv");
const OBJECT_LEN: u64 = 35;
const BLOCK_LEN: u64 = 10;

fn range(text: &str) -> Range<u64> {
    let (start, end) = text.split_once('-').expect("a range");
    start.parse().expect("a number")..end.parse().expect("a number")
}

fn ranges(text: &str) -> Vec<Range<u64>> {
    text.split(' ').filter(|part| !part.is_empty()).map(range).collect()
}

/// Returns the beginning of a chunk, if chunk `n` has `n + 1` bytes.
fn start_of(chunk: u64) -> u64 {
    chunk * (chunk + 1) / 2
}

fn bytes_of(chunks: &Range<u64>) -> (Vec<u64>, Vec<u8>) {
    let begin = start_of(chunks.start);
    let offsets = (chunks.start..=chunks.end).map(|chunk| start_of(chunk) - begin).collect();
    (offsets, pattern(1, begin..start_of(chunks.end)))
}

fn look_up_chunks(chunks: &Chunks, key: &Key, wanted: Range<u64>, missing: &str, row: &str) {
    let get = chunks.get(key, wanted.clone());
    let view = chunks.view(key, wanted.clone());
    let mut out = [0; 64];
    let into = chunks.get_into(key, wanted.clone(), &mut out);
    if missing == "error" {
        assert!(matches!(get, Err(Error::Range { .. })), "{row}");
        assert!(matches!(view, Err(Error::Range { .. })), "{row}");
        assert!(matches!(into, Err(Error::Range { .. })), "{row}");
        return;
    }
    let expected = ranges(missing);
    let (get, view, into) = (get.expect(row), view.expect(row), into.expect(row));
    assert_eq!(chunks.missing(key, wanted.clone()).expect(row), expected, "{row}");
    if !expected.is_empty() {
        assert_eq!((get.missing(), view.missing()), (&expected[..], &expected[..]), "{row}");
        assert_eq!(into, Lookup::Missing(expected), "{row}");
        return;
    }
    let (offsets, data) = bytes_of(&wanted);
    let read = get.found().expect(row);
    assert_eq!((&read.data, &read.offsets), (&data, &offsets), "{row}");
    assert_eq!(view.found().expect(row).to_vec(), data, "{row}");
    assert_eq!((into.found().expect(row), &out[..data.len()]), (offsets, &data[..]), "{row}");
}

fn look_up_blocks(chunks: &Chunks, address: &str, wanted: Range<u64>, missing: &str, row: &str) {
    let object = chunks.blocks(address, "v", OBJECT_LEN, BLOCK_LEN).expect(row);
    let get = object.get(wanted.clone());
    let view = object.view(wanted.clone());
    if missing == "error" {
        assert!(matches!(get, Err(Error::Range { .. })), "{row}");
        assert!(matches!(view, Err(Error::Range { .. })), "{row}");
        return;
    }
    let expected = ranges(missing);
    let (get, view) = (get.expect(row), view.expect(row));
    let mut out = vec![0; (wanted.end - wanted.start) as usize];
    let into = object.get_into(wanted.clone(), &mut out).expect(row);
    assert_eq!(object.missing(wanted.clone()).expect(row), expected, "{row}");
    assert_eq!(
        (get.missing(), view.missing(), into.missing()),
        (&expected[..], &expected[..], &expected[..]),
        "{row}"
    );
    if expected.is_empty() {
        let data = pattern(2, wanted);
        assert_eq!(get.found().expect(row), data, "{row}");
        assert_eq!(view.found().expect(row).to_vec(), data, "{row}");
        assert_eq!(out, data, "{row}");
    }
}

#[test]
fn lookups_of_all_combinations_of_chunks_and_ranges_match_the_table() {
    let case = Case::new();
    let chunks = case.open();
    let mut rows = 0;
    for row in TABLE.lines().skip(1) {
        let columns: Vec<_> = row.split(',').collect();
        let [kind, present, wanted, missing] = columns[..] else { panic!("four columns: {row}") };
        let name = format!("{kind} {present}");
        if kind == "chunks" {
            let key = Key::named(&name).expect(row);
            for put in ranges(present) {
                let (offsets, data) = bytes_of(&put);
                let stored = chunks.put(&key, put.clone(), &offsets, &data).expect(row);
                assert_eq!(stored.stored + stored.present, put.end - put.start, "{row}");
            }
            look_up_chunks(&chunks, &key, range(wanted), missing, row);
        } else {
            let object = chunks.blocks(&name, "v", OBJECT_LEN, BLOCK_LEN).expect(row);
            for put in ranges(present) {
                let bytes = put.start * BLOCK_LEN..(put.end * BLOCK_LEN).min(OBJECT_LEN);
                object.put(bytes.start, &pattern(2, bytes.clone())).expect(row);
            }
            look_up_blocks(&chunks, &name, range(wanted), missing, row);
        }
        rows += 1;
    }
    assert!(rows > 1000, "{rows} rows are not all");
}
