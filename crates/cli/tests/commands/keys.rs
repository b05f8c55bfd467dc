//! `get` with keys from standard input.

use crate::folder::{Folder, lines};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

fn three() -> Folder {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1"), ("-", "\"dash\""), ("b c", "[2]"), ("", "true")]));
    folder.build(&["a.jsonl", "-o", "a.nut"]);
    folder
}

#[test]
fn keys_from_standard_input_are_looked_up_in_order() {
    let folder = three();
    for text in ["b c\na\n-\n", "b c\r\na\r\n-"] {
        let run = folder.run_with(&["get", "a.nut", "-"], text.as_bytes());
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
        assert_eq!(run.stdout, "b c\t[2]\na\t1\n-\tdash\n");
    }
    let run = folder.run_with(&["get", "a.nut", "-", "--json"], b"a\n");
    assert_eq!((run.status, &run.stdout[..]), (Some(0), "{\"key\":\"a\",\"value\":1}\n"));
    let run = folder.run_with(&["get", "a.nut", "-", "--raw"], b"-\n-\n");
    assert_eq!((run.status, &run.stdout[..]), (Some(0), "dashdash"));
    let run = folder.run_with(&["get", "a.nut", "-"], b"a");
    assert_eq!((run.status, &run.stdout[..]), (Some(0), "a\t1\n"));
    let run = folder.run_with(&["get", "a.nut", "-"], b"");
    assert_eq!((run.status, &run.stdout[..], &run.stderr[..]), (Some(0), "", ""));
}

#[test]
fn missing_keys_of_standard_input_are_reported() {
    let folder = three();
    let run = folder.run_with(&["get", "a.nut", "-"], b"none\n\na\xff\na\n");
    assert_eq!((run.status, &run.stdout[..]), (Some(1), "\ttrue\na\t1\n"));
    let expected = "nuthatch: a.nut: no key \"none\"\nnuthatch: a.nut: no key \"a\\xff\"\n";
    assert_eq!(run.stderr, expected);
}

#[test]
fn keys_can_end_with_nul() {
    let folder = three();
    folder.file("b.jsonl", lines(&[("two\\nlines\\r", "1")])).build(&["b.jsonl", "-o", "b.nut"]);
    for flag in ["-0", "--null"] {
        let run = folder.run_with(&["get", "b.nut", "-", flag], b"two\nlines\r\0");
        assert_eq!((run.status, &run.stdout[..]), (Some(0), "two\\nlines\\r\t1\n"));
    }
    let run = folder.run(&["get", "a.nut", "a", "-0"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(2), ""));
    assert!(run.stderr.starts_with("nuthatch: --null: expected - as the key"), "{}", run.stderr);
}

#[test]
fn a_dash_among_other_keys_is_an_error() {
    let folder = three();
    let run = folder.run(&["get", "a.nut", "a", "-"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(2), ""));
    assert!(run.stderr.starts_with("nuthatch: KEY: expected - as the only key"), "{}", run.stderr);
}

#[test]
fn many_keys_are_looked_up_in_a_file_and_in_a_set() {
    let folder = Folder::new();
    let rows: Vec<_> = (0..20_000).map(|n| (format!("key:{n}"), n.to_string())).collect();
    let rows: Vec<_> = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    folder.file("a.jsonl", lines(&rows));
    folder.build(&["a.jsonl", "-o", "a.nut"]).build(&["a.jsonl", "-o", "s.nut", "--shards", "3"]);
    folder.build(&["a.jsonl", "-o", "z.nut", "--compress", "zstd"]);
    folder.file("keys", rows.iter().flat_map(|(key, _)| [key, "\n"]).collect::<String>());
    let expected = rows.iter().flat_map(|(key, value)| [key, "\t", value, "\n"]);
    let expected: String = expected.collect();
    for name in ["a.nut", "s.nut", "z.nut"] {
        let keys = File::open(folder.path("keys")).expect("the keys");
        let output = folder.command(&["get", name, "-"]).stdin(keys).output().expect("a start");
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
        assert!(output.stdout == expected.as_bytes(), "{name}");
    }
}

#[test]
fn values_are_printed_before_the_next_key_is_sent() {
    let folder = three();
    let mut command = folder.command(&["get", "a.nut", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a start");
    let mut keys = child.stdin.take().expect("its input");
    let mut values = BufReader::new(child.stdout.take().expect("its output"));
    for (key, expected) in [("a\n", "a\t1\n"), ("-\n", "-\tdash\n")] {
        keys.write_all(key.as_bytes()).expect("a key");
        let mut line = String::new();
        values.read_line(&mut line).expect("a value");
        assert_eq!(line, expected);
    }
    drop(keys);
    assert_eq!(child.wait().expect("the command to end").code(), Some(0));
}

#[test]
fn a_key_that_is_too_long_is_an_error_with_its_line() {
    let folder = three();
    let text = format!("a\n{}\na\n", "k".repeat(65_536));
    let run = folder.run_with(&["get", "a.nut", "-"], text.as_bytes());
    assert_eq!(run.status, Some(3));
    let expected =
        "nuthatch: <stdin>:2: expected a key of at most 65535 bytes, found a longer one\n";
    assert_eq!(run.stderr, expected);
}
