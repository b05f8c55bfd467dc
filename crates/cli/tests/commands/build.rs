//! `nuthatch build`, independent of the format.

use crate::folder::{Folder, lines, row};
use std::fmt::Write;

#[test]
fn the_summary_has_entries_size_overhead_and_time() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1"), ("b", "\"text\"")]));
    let run = folder.run(&["build", "a.jsonl", "-o", "a.nut"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    let names: Vec<_> = run.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["file", "entries", "size", "overhead", "time"]);

    let run = folder.run(&["build", "a.jsonl", "-o", "a.nut", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    let len = folder.bytes("a.nut").len();
    assert_eq!(summary["entries"], 2);
    assert_eq!(summary["rows"], 2);
    assert_eq!(summary["file_bytes"], len);
    assert_eq!(summary["key_bytes"], 2);
    assert_eq!(summary["value_bytes"], 12);
    let over = summary["overhead_bytes_per_entry"].as_f64().expect("a number");
    assert!((over - (len as f64 - 14.0) / 2.0).abs() < 0.001, "{over}");
    assert!(summary["seconds"].is_f64());

    let run = folder.run(&["build", "a.jsonl", "-o", "a.nut", "--quiet"]);
    assert_eq!((run.status, &run.stdout[..], &run.stderr[..]), (Some(0), "", ""));
}

#[test]
fn the_committed_sample_builds() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/places/sample.jsonl");
    let folder = Folder::new();
    folder.build(&[sample, "-o", "places.nut"]);
    let text = std::fs::read_to_string(sample).expect("the sample");
    let mut rows: Vec<_> = text.lines().collect();
    rows.sort_unstable();
    let parsed = |rows: &[String]| -> Vec<serde_json::Value> {
        rows.iter().map(|row| serde_json::from_str(row).expect("JSON")).collect()
    };
    let rows: Vec<_> = rows.iter().map(|&row| row.to_owned()).collect();
    let mut found = folder.rows("places.nut");
    found.sort();
    assert_eq!(parsed(&found), parsed(&rows));
}

#[test]
fn several_inputs_become_one_snapshot() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1")])).file("b.tsv", "b\t2\n").file("c.dta", "c=3\x1e");
    folder.build(&["a.jsonl", "b.tsv", "c.dta", "-o", "all.nut", "--type", "i64"]);
    assert_eq!(folder.rows("all.nut"), [row("a", "1"), row("b", "2"), row("c", "3")]);
}

#[test]
fn standard_input_is_json_lines_by_default() {
    let folder = Folder::new();
    for (arguments, text) in [
        (&["build", "-q", "-", "-o", "a.nut"][..], &row("k", "\"v\"")[..]),
        (&["build", "-q", "-", "-o", "a.nut", "--format", "tsv"], "k\tv"),
        (&["build", "-q", "-", "-o", "a.nut", "--format", "csv", "--key", "a"], "a,b\nk,v\n"),
    ] {
        let run = folder.run_with(arguments, text.as_bytes());
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
        let key = if arguments.contains(&"csv") { "k.b" } else { "k" };
        assert_eq!(folder.rows("a.nut"), [row(key, "\"v\"")]);
    }
    let run = folder.run_with(&["build", "-", "-o", "b.nut"], b"{}");
    assert_eq!(run.status, Some(3));
    let expected = "nuthatch: <stdin>:1:2: expected the field \"key\" or \"value\", found '}'\n";
    assert_eq!(run.stderr, expected);
    assert!(!folder.path("b.nut").exists());
}

/// Returns many rows, with a text at the end of one of them.
fn many_rows(wrong: Option<(u32, &str)>) -> String {
    let mut text = String::new();
    for number in 0..60_000 {
        let extra = wrong.filter(|(row, _)| *row == number).map_or("", |(_, extra)| extra);
        writeln!(text, "{{\"key\":\"key:{number}\",\"value\":[{number},\"\u{e9}\"]}}{extra}")
            .expect("writing to memory");
    }
    text.replace(",\"\u{e9}\"]", ",2]")
}

#[test]
fn any_number_of_threads_builds_the_same_bytes() {
    let folder = Folder::new();
    // Values of 32 bytes or more are shared. Every one occurs twice, far apart in the input.
    let value = |n: u32| format!("\"{}\"", format!("value {:06} ", n % 40_000).repeat(4));
    let rows: Vec<_> = (0..80_000).map(|n| row(&format!("key:{n:06}"), &value(n))).collect();
    folder.file("a.jsonl", rows.join("\n"));
    folder.build(&["a.jsonl", "-o", "1.nut", "--threads", "1"]);
    folder.build(&["a.jsonl", "-o", "2.nut", "--threads", "2"]);
    folder.build(&["a.jsonl", "-o", "9.nut", "--threads", "9", "--memory", "32M"]);
    let info: serde_json::Value =
        serde_json::from_str(&folder.run(&["info", "1.nut", "--json"]).stdout).expect("JSON");
    assert!(info["shared_entries"].as_u64() >= Some(40_000), "{info}");
    assert!(folder.bytes("1.nut") == folder.bytes("2.nut"), "two threads");
    assert!(folder.bytes("1.nut") == folder.bytes("9.nut"), "nine threads, little memory");
}

/// Peak memory besides the budget: program, threads, allocator and the longest row. Usually it is
/// 12 MiB; batches that wait on a busy machine take more.
const BESIDES: u64 = 24 << 20;

/// All rows of one key were in memory at once: 218 MiB instead of 32 MiB.
#[test]
fn a_build_with_one_hot_key_stays_within_its_memory() {
    let folder = Folder::new();
    let text = "v".repeat(80);
    let rows = 1_200_000;
    let mut input = String::with_capacity(rows * 130);
    for number in 0..rows {
        writeln!(input, "{{\"key\":\"hot\",\"value\":\"{number} {text}\"}}").expect("memory");
    }
    folder.file("a.jsonl", input);
    let build = ["build", "-q", "a.jsonl", "-o", "a.nut", "--memory", "32MiB", "--threads", "4"];
    for (keep, expected) in [("error", None), ("first", Some(0)), ("last", Some(rows - 1))] {
        let (run, peak) = folder.run_with_peak(&[&build[..], &["--on-duplicate", keep]].concat());
        println!("{keep}: {} MiB", peak >> 20);
        assert!(peak > 1 << 20 && peak <= (32 << 20) + BESIDES, "{keep}: {} MiB", peak >> 20);
        if let Some(kept) = expected {
            assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{keep}");
            let value = format!("\"{kept} {text}\"");
            assert_eq!(folder.rows("a.nut"), [row("hot", &value)], "{keep}");
        } else {
            assert_eq!(run.status, Some(3), "{run:?}");
            assert!(run.stderr.contains("a.jsonl:1") && run.stderr.contains(":2"), "{run:?}");
        }
    }
}

#[test]
fn the_earliest_error_is_reported_with_any_number_of_threads() {
    let folder = Folder::new();
    let mut text = many_rows(Some((40_000, " x")));
    text.push_str("{\n");
    folder.file("a.jsonl", &text).file("b.jsonl", "null\n");
    for threads in ["1", "2", "7"] {
        let inputs = ["a.jsonl", "b.jsonl", "-o", "a.nut", "--threads", threads];
        let expected = "nuthatch: a.jsonl:40001:39: expected the end of the line after the row, \
                        found x\n";
        assert_eq!(folder.build_fails(3, &inputs), expected);
    }
    assert!(!folder.path("a.nut").exists());
}

#[test]
fn a_failed_build_leaves_the_old_file() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1")])).file("b.jsonl", "null");
    folder.build(&["a.jsonl", "-o", "a.nut"]);
    let old = folder.bytes("a.nut");
    folder.build_fails(3, &["b.jsonl", "-o", "a.nut"]);
    assert_eq!(folder.bytes("a.nut"), old);
    let names = std::fs::read_dir(folder.path("")).expect("the folder");
    assert_eq!(names.count(), 3, "no temporary file is left");
}

#[test]
fn a_value_of_many_megabytes_is_read() {
    let folder = Folder::new();
    let long = "0123456789abcdef".repeat(1 << 18);
    folder.file(
        "a.jsonl",
        format!(
            "{}\n{}\n{}\n",
            row("a", "1"),
            row("b", &format!("\"{long}\"")),
            row("c", &format!("\"\\n{long}\""))
        ),
    );
    folder.build(&["a.jsonl", "-o", "a.nut", "--memory", "32M"]);
    assert!(folder.run(&["get", "a.nut", "b", "--raw"]).stdout == long);
    assert!(folder.run(&["get", "a.nut", "c", "--raw"]).stdout[1..] == long);
}

#[test]
fn keys_that_are_too_long_are_reported_with_their_position() {
    let folder = Folder::new();
    let key = "k".repeat(65_536);
    folder.file("a.jsonl", format!("\n{}", row(&key, "1")));
    let expected = "nuthatch: a.jsonl:2:8: expected a key length in bytes of at most 65535, \
                    found 65536\n";
    assert_eq!(folder.build_fails(3, &["a.jsonl", "-o", "a.nut"]), expected);
    folder.file("a.jsonl", row(&key[1..], "1")).build(&["a.jsonl", "-o", "a.nut"]);
}

#[test]
fn lists_of_matching_keys_are_stored_as_32_bit_floats() {
    let folder = Folder::new();
    let rows = [
        ("a.v", "[0.1,2]"),
        ("b.v", "[1,2]"),
        ("c.w", "[0.1]"),
        ("d.v", "[\"x\"]"),
        ("e.v", "0.1"),
        ("f.v", "[]"),
        ("g.v", "{\"$f64\":[\"NaN\"]}"),
    ];
    folder.file("a.jsonl", lines(&rows) + "{\"value\":[0.1],\"key\":\"z.v\"}\n");
    folder.build(&["a.jsonl", "-o", "a.nut", "--f32", "?.v", "--f32", "none"]);
    assert_eq!(
        folder.rows("a.nut"),
        [
            row("a.v", "{\"$f32\":[0.1,2.0]}"),
            row("b.v", "{\"$f32\":[1.0,2.0]}"),
            row("c.w", "[0.1]"),
            row("d.v", "[\"x\"]"),
            row("e.v", "0.1"),
            row("f.v", "[]"),
            row("g.v", "{\"$f32\":[\"NaN\"]}"),
            row("z.v", "{\"$f32\":[0.1]}"),
        ]
    );
    folder.file("a.jsonl", lines(&[("a", "[1e39]")]));
    let expected = "nuthatch: a.jsonl:1:21: expected a number in the range of a 32-bit float, \
                    found 1e39\n";
    assert_eq!(folder.build_fails(3, &["a.jsonl", "-o", "a.nut", "--f32", "*"]), expected);
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1")])).file("b.csv", "id,a\n").file("c.txt", "");
    folder.file("a.dta", "");
    for (arguments, message) in [
        (&["a.jsonl"][..], "--output"),
        (&["-o", "a.nut"], "<INPUT>"),
        (&["a.jsonl", "-o", "a.nut", "--threads", "0"], "0 is not in 1..=1024"),
        (&["a.jsonl", "-o", "a.nut", "--memory", "1M"], "expected at least 32M"),
        (&["a.jsonl", "-o", "a.nut", "--memory", "much"], "expected a size such as 512M"),
        (&["a.jsonl", "-o", "a.nut", "--compress", "zstd:23"], "a level from 1 to 22"),
        (&["a.jsonl", "-o", "a.nut", "--compress", "lz4"], "expected none, zstd or zstd:LEVEL"),
        (
            &["a.jsonl", "-o", "a.nut", "--on-duplicate", "skip"],
            "[possible values: error, first, last]",
        ),
        (&["a.jsonl", "-o", "a.nut", "--column", "a:u8"], "expected a type after the colon"),
        (&["a.jsonl", "-o", "a.nut", "--json", "--quiet"], "cannot be used with"),
        (&["a.jsonl", "-o", "a.nut", "--type", "i64"], "--type is for TSV or CSV or AxonCache"),
        (&["a.dta", "-o", "a.nut", "--key", "id"], "--key is for CSV or Parquet or JSON lines or"),
        (&["a.jsonl", "-o", "a.nut", "--value", "v"], "--value needs --key, the field with"),
        (&["b.csv", "-o", "a.nut"], "CSV input needs --key, the column with the keys"),
        (&["c.txt", "-o", "a.nut"], "nuthatch: c.txt: expected an extension of a known format"),
    ] {
        let error = folder.build_fails(2, arguments);
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn files_that_cannot_be_read_or_written_exit_with_3() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1")]));
    std::fs::create_dir(folder.path("b.jsonl")).expect("a folder");
    for (arguments, message) in [
        (&["a.jsonl", "none.jsonl", "-o", "a.nut"][..], "nuthatch: none.jsonl: open: No such file"),
        (&["b.jsonl", "-o", "a.nut"], "nuthatch: b.jsonl: open: is a directory"),
        (&["a.jsonl", "-o", "none/a.nut"], "none"),
    ] {
        let error = folder.build_fails(3, arguments);
        assert!(error.starts_with("nuthatch: ") && error.contains(message), "{error}");
    }
}
