//! Formats and their options, through the command.

use crate::folder::{Folder, row};
use std::io::Write;

#[test]
fn csv_columns_have_the_types_of_the_options() {
    let folder = Folder::new();
    folder.file("a.csv", "\u{feff}id,name,n,tags\r\n1,Nancy,105058,\"[\"\"a\"\"]\"\r\n2,,,\r\n");
    folder.build(&[
        "a.csv",
        "-o",
        "a.nut",
        "--key",
        "id",
        "--column",
        "n:i64",
        "--column",
        "tags:string[]",
    ]);
    assert_eq!(
        folder.rows("a.nut"),
        [
            row("1.n", "105058"),
            row("1.name", "\"Nancy\""),
            row("1.tags", "[\"a\"]"),
            row("2.name", "\"\""),
        ]
    );
    folder.build(&["a.csv", "-o", "a.nut", "--key", "id", "--value", "n", "--type", "f64"]);
    assert_eq!(folder.rows("a.nut"), [row("1", "105058.0")]);
}

#[test]
fn csv_errors_name_what_is_missing() {
    let folder = Folder::new();
    folder.file("a.csv", "id,n\n1,x\n").file("empty.csv", "\n");
    for (arguments, message) in [
        (
            &["a.csv", "-o", "a.nut", "--key", "key"][..],
            "a.csv: expected a column \"key\", found \"id\", \"n\"",
        ),
        (
            &["a.csv", "-o", "a.nut", "--key", "id", "--value", "v"],
            "a.csv: expected a column \"v\", found \"id\", \"n\"",
        ),
        (
            &["a.csv", "-o", "a.nut", "--key", "id", "--column", "m:i64"],
            "a.csv: expected a column with values for --column m:i64, found none",
        ),
        (
            &["a.csv", "-o", "a.nut", "--key", "id", "--column", "n:i64"],
            "a.csv:2:3: expected an integer of at most 64 bits, found \"x\"",
        ),
        (
            &["empty.csv", "-o", "a.nut", "--key", "id"],
            "empty.csv: expected a header with the names of columns, found none",
        ),
    ] {
        assert_eq!(folder.build_fails(3, arguments), format!("nuthatch: {message}\n"));
    }
}

#[test]
fn csv_rows_may_span_lines_and_chunks() {
    let folder = Folder::new();
    let mut text = "id,text\n".to_owned();
    for number in 0..30_000 {
        let row = format!("{number},\"line one,\nline \"\"two\"\"\n{number}\"\n");
        text.push_str(&row);
    }
    text.push_str("x,y,z\n");
    folder.file("a.csv", &text);
    for threads in ["1", "4"] {
        let error =
            folder.build_fails(3, &["a.csv", "-o", "a.nut", "--key", "id", "--threads", threads]);
        let expected = "nuthatch: a.csv:90002:5: expected 2 fields, as the header has, found 3\n";
        assert_eq!(error, expected);
    }
    folder.file("a.csv", text.trim_end_matches("x,y,z\n"));
    folder.build(&["a.csv", "-o", "a.nut", "--key", "id"]);
    let run = folder.run(&["get", "a.nut", "29999.text", "--raw"]);
    assert_eq!(run.stdout, "line one,\nline \"two\"\n29999");
}

#[test]
fn a_chunk_with_many_rows_fills_several_batches() {
    let folder = Folder::new();
    let columns: Vec<_> = (0..50).map(|column| format!("c{column}")).collect();
    let mut text = format!("id,{}\n", columns.join(","));
    for number in 0..200 {
        let key = format!("{number:0>2000}");
        text.push_str(&(key + &",1".repeat(50) + "\n"));
    }
    folder.file("a.csv", &text);
    for threads in ["1", "3"] {
        let output = format!("{threads}.nut");
        folder.build(&["a.csv", "-o", &output, "--key", "id", "--threads", threads]);
    }
    assert_eq!(folder.rows("1.nut").len(), 10_000);
    assert!(folder.bytes("1.nut") == folder.bytes("3.nut"), "other bytes from three threads");
    folder.file("a.csv", text + "x\n");
    let error = folder.build_fails(3, &["a.csv", "-o", "a.nut", "--key", "id"]);
    let expected = "nuthatch: a.csv:202:2: expected 51 fields, as the header has, found 1\n";
    assert_eq!(error, expected);
}

#[test]
fn axoncache_text_keeps_lists_in_order() {
    let folder = Folder::new();
    folder.file("a.dta", "250.xxx=foo=bar\x1e\n\x01999.vec=slot1|slot0|\x1e\x01999.none=\x1e");
    folder.build(&["a.dta", "-o", "a.nut"]);
    assert_eq!(
        folder.rows("a.nut"),
        [
            row("250.xxx", "\"foo=bar\""),
            row("999.none", "[]"),
            row("999.vec", "[\"slot1\",\"slot0\",\"\"]"),
        ]
    );
}

#[test]
fn packed_inputs_are_unpacked() {
    let folder = Folder::new();
    let text = row("a", "1");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).expect("writing to memory");
    folder.file("a.jsonl.gz", gzip.finish().expect("writing to memory"));
    folder.file("a.jsonl.zst", zstd::encode_all(text.as_bytes(), 3).expect("writing to memory"));
    for name in ["a.jsonl.gz", "a.jsonl.zst"] {
        folder.build(&[name, "-o", "a.nut"]);
        assert_eq!(folder.rows("a.nut"), [row("a", "1")]);
    }
    for name in ["b.jsonl.gz", "b.jsonl.zst"] {
        folder.file(name, &text);
        let error = folder.build_fails(3, &[name, "-o", "a.nut"]);
        assert!(error.starts_with(&format!("nuthatch: {name}: ")), "{error}");
    }
}

#[test]
fn a_byte_order_mark_and_line_ends_of_windows_are_no_data() {
    let folder = Folder::new();
    let bom = "\u{feff}";
    folder.file("a.jsonl", format!("{bom}{}\r\n\r\n{}\r\n", row("a", "1"), row("b", "2")));
    folder.file("b.tsv", format!("{bom}c\td\r\n"));
    folder.build(&["a.jsonl", "b.tsv", "-o", "a.nut"]);
    assert_eq!(folder.rows("a.nut"), [row("a", "1"), row("b", "2"), row("c", "\"d\"")]);
}
