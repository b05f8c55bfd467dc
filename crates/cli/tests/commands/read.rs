//! `get`, `dump`, `info` and `verify`.

use crate::folder::{Folder, lines, row};
use std::io::Read;
use std::process::Stdio;

/// Builds a snapshot with a value of each type.
fn typed() -> Folder {
    let folder = Folder::new();
    folder.file(
        "a.jsonl",
        lines(&[
            ("string", "\"a\\tb\\\\\\n\\u001bé\""),
            ("bytes", "{\"$bytes\":\"AAH/YQ==\"}"),
            ("bool", "true"),
            ("int", "-5"),
            ("float", "1.0"),
            ("nan", "{\"$f64\":\"NaN\"}"),
            ("ints", "[1,2]"),
            ("floats", "{\"$f64\":[0.5,\"-Infinity\"]}"),
            ("singles", "{\"$f32\":[0.1]}"),
            ("strings", "[\"a\",\"é\\n\"]"),
            ("empty", "[]"),
            ("", "\"\""),
        ]),
    );
    folder.build(&["a.jsonl", "-o", "a.nut"]);
    folder
}

#[test]
fn one_key_prints_its_value() {
    let folder = typed();
    for (key, value) in [
        ("string", &b"a\tb\\\n\x1b\xc3\xa9\n"[..]),
        ("bytes", b"\x00\x01\xffa\n"),
        ("bool", b"true\n"),
        ("int", b"-5\n"),
        ("float", b"1.0\n"),
        ("nan", b"NaN\n"),
        ("ints", b"[1,2]\n"),
        ("floats", b"[0.5,\"-Infinity\"]\n"),
        ("singles", b"[0.1]\n"),
        ("strings", "[\"a\",\"é\\n\"]\n".as_bytes()),
        ("empty", b"[]\n"),
        ("", b"\n"),
    ] {
        let run = folder.run(&["get", "a.nut", key]);
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
        assert_eq!(run.stdout_bytes, value, "{key}");
    }
}

#[test]
fn several_keys_print_keys_and_values() {
    let folder = typed();
    let run = folder.run(&["get", "a.nut", "int", "string", "bytes", "strings", "int"]);
    let expected = "int\t-5\nstring\ta\\tb\\\\\\n\\x1bé\nbytes\t\\x00\\x01\\xffa\n\
                    strings\t[\"a\",\"é\\\\n\"]\nint\t-5\n";
    assert_eq!((run.status, &run.stdout[..]), (Some(0), expected));
    let run = folder.run(&["get", "a.nut", "float", "singles", "nan", "--json"]);
    let expected =
        [row("float", "1.0"), row("singles", "{\"$f32\":[0.1]}"), row("nan", "{\"$f64\":\"NaN\"}")]
            .join("\n")
            + "\n";
    assert_eq!((run.status, run.stdout), (Some(0), expected));
}

#[test]
fn raw_values_are_their_bytes() {
    let folder = typed();
    for (keys, bytes) in [
        (&["string"][..], &b"a\tb\\\n\x1b\xc3\xa9"[..]),
        (&["bytes"], b"\x00\x01\xffa"),
        (&["bool"], b"\x01"),
        (&["int"], b"\xfb\xff\xff\xff\xff\xff\xff\xff"),
        (&["singles"], b"\xcd\xcc\xcc\x3d"),
        (&["strings"], b"\x02\0\0\0\x01\0\0\0\x04\0\0\0a\xc3\xa9\n"),
        (&["empty"], b""),
        (&["bool", "bytes"], b"\x01\x00\x01\xffa"),
    ] {
        let run = folder.run(&[&["get", "a.nut", "--raw"], keys].concat());
        assert_eq!((run.status, run.stdout_bytes.as_slice()), (Some(0), bytes), "{keys:?}");
    }
}

#[test]
fn missing_keys_are_reported_and_other_values_are_printed() {
    let folder = typed();
    let run = folder.run(&["get", "a.nut", "int", "né\u{1b}", "bool"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(1), "int\t-5\nbool\ttrue\n"));
    assert_eq!(run.stderr, "nuthatch: a.nut: no key \"né\\x1b\"\n");
    let run = folder.run(&["get", "a.nut", "--", "-x"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(1), ""));
}

#[test]
fn files_that_are_no_snapshots_exit_with_3() {
    let folder = Folder::new();
    folder.file("text", "not a snapshot");
    for command in [
        &["get", "text", "k"][..],
        &["dump", "text"],
        &["info", "text"],
        &["verify", "text"],
        &["info", "none"],
    ] {
        let run = folder.run(command);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{command:?}");
        assert!(run.stderr.starts_with("nuthatch: ") && run.stderr.contains(command[1]));
    }
}

#[test]
fn verify_finds_damage() {
    let folder = typed();
    let run = folder.run(&["verify", "a.nut"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    assert!(run.stdout.starts_with("a.nut: valid: 12 entries, "), "{}", run.stdout);
    let run = folder.run(&["verify", "a.nut", "--quiet"]);
    assert_eq!((run.status, &run.stdout[..], &run.stderr[..]), (Some(0), "", ""));
    let mut bytes = folder.bytes("a.nut");
    let at = bytes.windows(6).position(|window| window == b"string").expect("the key");
    bytes[at] ^= 1;
    let run = folder.file("b.nut", bytes).run(&["verify", "b.nut"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(3), ""));
    assert!(run.stderr.starts_with("nuthatch: damaged file: b.nut: "), "{}", run.stderr);
}

/// It printed another key, with exit status 0.
#[test]
fn a_dump_of_a_damaged_file_is_an_error() {
    let folder = typed();
    let mut bytes = folder.bytes("a.nut");
    let at = bytes.windows(6).position(|window| window == b"string").expect("the key");
    bytes[at] ^= 1;
    let run = folder.file("b.nut", bytes).run(&["dump", "b.nut"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(3), ""));
    assert!(run.stderr.starts_with("nuthatch: damaged file: b.nut: "), "{}", run.stderr);
}

#[test]
fn info_describes_the_file() {
    let folder = typed();
    let run = folder.run(&["info", "a.nut"]);
    assert_eq!(run.status, Some(0));
    for line in ["entries           12", "  list of f32     1", "  seed            0"] {
        assert!(run.stdout.lines().any(|l| l == line), "{line} in\n{}", run.stdout);
    }
    let run = folder.run(&["info", "a.nut", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!(info["entries"], 12);
    assert_eq!(info["entries_by_type"]["empty list"], 1);
    assert_eq!(info["file_bytes"], folder.bytes("a.nut").len());
}

#[test]
fn tsv_is_for_values_of_one_type() {
    let folder = typed();
    let run = folder.run(&["dump", "a.nut", "--format", "tsv"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(3), ""));
    let expected = "nuthatch: a.nut: expected values of one type, because TSV has no types, found \
                    bytes for \"bytes\" and string for ";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(run.stderr.ends_with("; --format jsonl holds both\n"), "{}", run.stderr);

    folder.file("b.jsonl", lines(&[("a\\tb", "[1]"), ("c", "[]")]));
    folder.build(&["b.jsonl", "-o", "b.nut"]);
    let run = folder.run(&["dump", "b.nut", "--format", "tsv"]);
    let mut rows: Vec<_> = run.stdout.lines().collect();
    rows.sort_unstable();
    assert_eq!(rows, ["a\\tb\t[1]", "c\t[]"]);
    let hint = "nuthatch: to read this back: nuthatch build --format tsv --type i64[]\n";
    assert_eq!(run.stderr, hint);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = Folder::new();
    let long = "x".repeat(1000);
    let rows: String =
        (0..2000).map(|n| row(&n.to_string(), &format!("\"{long}\"")) + "\n").collect();
    folder.file("a.jsonl", rows).build(&["a.jsonl", "-o", "a.nut"]);
    let mut child = folder
        .command(&["dump", "a.nut"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command to start");
    let mut stdout = child.stdout.take().expect("its output");
    stdout.read_exact(&mut [0; 10]).expect("the first bytes");
    drop(stdout);
    let output = child.wait_with_output().expect("the command to end");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn messages_that_cannot_be_written_are_no_failure() {
    let folder = typed();
    let mut command = folder.command(&["get", "a.nut", "none", "int"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a start");
    drop(child.stderr.take());
    let output = child.wait_with_output().expect("the command to end");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"int\t-5\n"[..]));
}
