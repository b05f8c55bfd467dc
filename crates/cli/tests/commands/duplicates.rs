//! Keys that several rows have.

use crate::folder::{Folder, lines, row};

#[test]
fn a_duplicate_key_is_an_error_that_names_both_places() {
    let folder = Folder::new();
    folder.file("a.jsonl", "\n".to_owned() + &lines(&[("x", "1"), ("nüt", "2")]));
    folder.file("b.tsv", "y\tz\nnüt\t3\nx\t4\n");
    let expected = "nuthatch: b.tsv:2: expected every key once, found \"nüt\" again, first given \
                    at a.jsonl:3; --on-duplicate first or last keeps one\n";
    for threads in ["1", "3"] {
        let arguments = ["a.jsonl", "b.tsv", "-o", "a.nut", "--threads", threads];
        assert_eq!(folder.build_fails(3, &arguments), expected);
    }
    assert!(!folder.path("a.nut").exists());
}

#[test]
fn duplicates_in_records_and_columns_are_reported_by_record_and_row() {
    let folder = Folder::new();
    folder.file("a.dta", "a=1\x1e\nb=2\x1ea=3\x1e").file("b.csv", "id,a\n1,\"x\ny\"\n1,z\n");
    let error = folder.build_fails(3, &["a.dta", "-o", "a.nut"]);
    assert!(error.starts_with("nuthatch: a.dta:3: ") && error.contains("at a.dta:1;"), "{error}");
    let error = folder.build_fails(3, &["b.csv", "-o", "a.nut", "--key", "id"]);
    assert!(error.starts_with("nuthatch: b.csv:4: ") && error.contains("at b.csv:2;"), "{error}");
}

#[test]
fn the_first_or_last_row_can_be_kept() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1"), ("b", "2"), ("a", "3")]));
    folder.file("b.jsonl", lines(&[("a", "4")]));
    for (choice, value) in [("first", "1"), ("last", "4")] {
        let arguments = ["build", "a.jsonl", "b.jsonl", "-o", "a.nut", "--on-duplicate", choice];
        let run = folder.run(&arguments);
        assert_eq!(run.status, Some(0), "{run:?}");
        assert!(run.stdout.contains("entries   2 (2 more rows repeated a key)"), "{}", run.stdout);
        assert_eq!(folder.rows("a.nut"), [row("a", value), row("b", "2")]);
    }
}
