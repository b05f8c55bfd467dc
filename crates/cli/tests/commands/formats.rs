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

#[test]
fn csv_can_have_another_delimiter() {
    let folder = Folder::new();
    for (delimiter, byte) in [(";", ';'), ("tab", '\t'), ("\\t", '\t'), ("|", '|')] {
        let text = format!("id{byte}a,b{byte}c\n1{byte}\"x{byte}\"\"\ny\"{byte}2,3\n");
        folder.file("a.csv", text);
        folder.build(&["a.csv", "-o", "a.nut", "--key", "id", "--delimiter", delimiter]);
        let text = format!("\"x{byte}\\\"\\ny\"").replace('\t', "\\t");
        assert_eq!(folder.rows("a.nut"), [row("1.a,b", &text), row("1.c", "\"2,3\"")]);
    }
    folder.file("a.csv", "id;a\n\"1\"x;2\n");
    let error = folder.build_fails(3, &["a.csv", "-o", "a.nut", "--key", "id", "--delimiter", ";"]);
    let expected = "nuthatch: a.csv:2:4: expected ';' or the end of the line after the quote that \
                    ends a field, found x\n";
    assert_eq!(error, expected);
    for delimiter in ["\"", "", ";;", "é", "\n"] {
        let build = ["build", "a.csv", "-o", "a.nut", "--key", "id", "--delimiter", delimiter];
        assert_eq!(folder.run(&build).status, Some(2), "{delimiter:?}");
    }
    folder.file("a.tsv", "a\tb\n");
    let error = folder.build_fails(2, &["a.tsv", "-o", "a.nut", "--delimiter", "tab"]);
    assert!(error.starts_with("nuthatch: --delimiter is for CSV input"), "{error}");
}

#[test]
fn csv_rows_with_another_delimiter_may_span_lines_and_chunks() {
    let folder = Folder::new();
    let rows = (0..60_000).map(|number| format!("{number};\"one;\n\"\"two\"\"\";5\" x\n"));
    folder.file("a.csv", rows.collect::<String>());
    let options = ["--key", "id", "--delimiter", ";", "--header", "id,text,inches"];
    folder.build(&[&["a.csv", "-o", "a.nut"], &options[..]].concat());
    let run = folder.run(&["get", "a.nut", "59999.text", "59999.inches", "--json"]);
    let expected =
        [row("59999.text", "\"one;\\n\\\"two\\\"\""), row("59999.inches", "\"5\\\" x\"")];
    assert_eq!(run.stdout.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn csv_without_a_header_has_named_columns() {
    let folder = Folder::new();
    folder.file("a.csv", "1,Lima,10\n2,Oslo,7\n");
    let options = ["--header", "id,name,population", "--key", "id", "--column", "population:i64"];
    folder.build(&[&["a.csv", "-o", "a.nut"], &options[..]].concat());
    let expected = [
        row("1.name", "\"Lima\""),
        row("1.population", "10"),
        row("2.name", "\"Oslo\""),
        row("2.population", "7"),
    ];
    assert_eq!(folder.rows("a.nut"), expected);
    for (header, message) in [
        ("id,name", "a.csv:1:8: expected 2 fields, as the header has, found 3"),
        ("name,population", "a.csv: expected a column \"id\", found \"name\", \"population\""),
    ] {
        let error =
            folder.build_fails(3, &["a.csv", "-o", "a.nut", "--key=id", "--header", header]);
        assert_eq!(error, format!("nuthatch: {message}\n"));
    }
    let load = ["store", "load", "db", "a.csv", "--key", "1", "--value", "2", "--header", "1,2,3"];
    assert_eq!(folder.run(&load).status, Some(0));
    assert_eq!(folder.run(&["store", "scan", "db"]).stdout, "1\tLima\n2\tOslo\n");
}
