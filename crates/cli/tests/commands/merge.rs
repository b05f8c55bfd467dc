//! `merge`.

use crate::folder::{Folder, lines, row};

fn two() -> Folder {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1"), ("both", "\"of a\"")]));
    folder.file("b.jsonl", lines(&[("b", "{\"$f32\":[0.5]}"), ("both", "\"of b\"")]));
    folder.file("c.jsonl", lines(&[("c", "{\"$bytes\":\"AP8=\"}")]));
    folder.build(&["a.jsonl", "-o", "a.nut"]).build(&["b.jsonl", "-o", "b.nut"]);
    folder.build(&["c.jsonl", "-o", "c.nut", "--shards", "2", "--meta", "name=c"]);
    folder
}

#[test]
fn a_key_of_two_inputs_is_an_error_that_names_both() {
    let folder = two();
    let run = folder.run(&["merge", "c.nut", "a.nut", "b.nut", "-o", "all.nut"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(3), ""));
    let expected = "nuthatch: b.nut: expected keys that no other input has, found \"both\", which \
                    a.nut has; --on-duplicate first or last keeps one\n";
    assert_eq!(run.stderr, expected);
    assert!(!folder.path("all.nut").exists());
}

#[test]
fn the_first_or_the_last_value_is_kept() {
    let folder = two();
    for (choice, kept) in [("first", "\"of a\""), ("last", "\"of b\"")] {
        let merge = ["merge", "a.nut", "b.nut", "c.nut", "-o", "all.nut", "--on-duplicate", choice];
        let run = folder.run(&merge);
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
        assert!(run.stdout.contains("entries   4 (1 more rows repeated a key)"), "{}", run.stdout);
        let expected = [
            row("a", "1"),
            row("b", "{\"$f32\":[0.5]}"),
            row("both", kept),
            row("c", "{\"$bytes\":\"AP8=\"}"),
        ];
        assert_eq!(folder.rows("all.nut"), expected);
        // A build of the same rows has the same bytes.
        let build = ["a.jsonl", "b.jsonl", "c.jsonl", "-o", "built.nut", "--on-duplicate", choice];
        folder.build(&build);
        assert_eq!(folder.bytes("all.nut"), folder.bytes("built.nut"));
    }
}

#[test]
fn the_output_has_the_options_of_build() {
    let folder = two();
    let options = ["--compress", "zstd", "--seed", "3", "--meta", "name=all", "--quiet"];
    let merge = [&["merge", "a.nut", "c.nut", "-o", "all.nut", "--shards", "3"], &options[..]];
    let run = folder.run(&merge.concat());
    assert_eq!((run.status, &run.stdout[..], &run.stderr[..]), (Some(0), "", ""));
    let info = folder.run(&["info", "all.nut", "--json"]).stdout;
    let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
    assert_eq!((&info["shards"], &info["seed"]), (&3.into(), &3.into()));
    assert_eq!(info["metadata"], serde_json::json!({"name": "all"}));
    let run = folder.run(&["merge", "a.nut", "-o", "-", "--shards", "2"]);
    assert_eq!(run.status, Some(2));
    let run = folder.run(&["merge", "a.nut", "c.nut", "-o", "-"]);
    assert_eq!(run.status, Some(0));
    folder.file("piped.nut", &run.stdout_bytes);
    assert_eq!(folder.rows("piped.nut").len(), 3);
    let run = folder.run(&["merge", "a.nut", "-o", "one.nut", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(summary["entries"], 2);
}

#[test]
fn an_input_can_be_replaced() {
    let folder = two();
    let merge = ["merge", "b.nut", "a.nut", "-o", "a.nut", "--on-duplicate", "first", "--quiet"];
    assert_eq!(folder.run(&merge).status, Some(0));
    let expected = [row("a", "1"), row("b", "{\"$f32\":[0.5]}"), row("both", "\"of b\"")];
    assert_eq!(folder.rows("a.nut"), expected);
    let merge = ["merge", "a.nut", "c.nut", "-o", "c.nut", "--shards", "2", "--quiet"];
    assert_eq!(folder.run(&merge).status, Some(0));
    assert_eq!(folder.rows("c.nut").len(), 4);
}

#[test]
fn damaged_and_missing_inputs_are_errors_and_publish_nothing() {
    let folder = two();
    let mut bytes = folder.bytes("a.nut");
    let at = bytes.windows(4).position(|window| window == b"both").expect("the key");
    bytes[at] ^= 1;
    folder.file("bad.nut", bytes);
    for input in ["bad.nut", "none.nut", "a.jsonl"] {
        let run = folder.run(&["merge", "c.nut", input, "-o", "all.nut"]);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{input}");
        assert!(run.stderr.contains(input), "{}", run.stderr);
        assert!(!folder.path("all.nut").exists());
    }
    assert_eq!(folder.run(&["merge", "-o", "all.nut"]).status, Some(2));
}

#[test]
fn many_entries_are_merged_within_the_memory() {
    let folder = Folder::new();
    let rows = |from: u32| -> String {
        let text = "v".repeat(100);
        let row = |n| format!("{{\"key\":\"key:{n}\",\"value\":\"{text}{n}\"}}\n");
        (from..from + 30_000).map(row).collect()
    };
    folder.file("a.jsonl", rows(0)).file("b.jsonl", rows(30_000));
    folder.build(&["a.jsonl", "-o", "a.nut"]).build(&["b.jsonl", "-o", "b.nut"]);
    folder.build(&["a.jsonl", "b.jsonl", "-o", "built.nut"]);
    let run = folder.run(&["merge", "a.nut", "b.nut", "-o", "m.nut", "--memory", "32M", "-q"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    assert!(folder.bytes("m.nut") == folder.bytes("built.nut"), "other bytes");
}
