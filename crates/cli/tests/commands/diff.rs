//! `diff`.

use crate::folder::{Folder, lines, row};

/// Builds `old.nut`, and `new.nut` in which one key is removed, one added, and two changed.
fn snapshots(options: [&[&str]; 2]) -> Folder {
    let folder = Folder::new();
    let same = ("same", "\"a long text that is stored once, and compressed, if it repeats\"");
    let old = [same, ("removed\\t1", "\"a\\tb\""), ("int", "1"), ("nan", "{\"$f64\":\"NaN\"}")];
    let new = [("added", "[1,2]"), ("int", "1.0"), same, ("nan", "{\"$f64\":\"NaN\"}")];
    let list = ("list", "[\"a\",\"bc\"]");
    folder.file("old.jsonl", lines(&[&old[..], &[("list", "[\"ab\",\"c\"]")]].concat()));
    folder.file("new.jsonl", lines(&[&new[..], &[list]].concat()));
    folder.build(&[&["old.jsonl", "-o", "old.nut"], options[0]].concat());
    folder.build(&[&["new.jsonl", "-o", "new.nut"], options[1]].concat());
    folder
}

#[test]
fn differences_are_printed_and_are_exit_status_1() {
    let sets: [&[&str]; 4] =
        [&[], &["--shards", "3"], &["--seed", "7"], &["--compress", "zstd:19"]];
    for old in sets {
        for new in sets {
            let folder = snapshots([old, new]);
            let run = folder.run(&["diff", "old.nut", "new.nut"]);
            assert_eq!((run.status, &run.stderr[..]), (Some(1), ""));
            let mut found: Vec<_> = run.stdout.lines().collect();
            assert_eq!(found.last(), Some(&"+\tadded\t[1,2]"));
            found.sort_unstable();
            let expected = [
                "+\tadded\t[1,2]",
                "+\tint\t1.0",
                "+\tlist\t[\"a\",\"bc\"]",
                "-\tint\t1",
                "-\tlist\t[\"ab\",\"c\"]",
                "-\tremoved\\t1\t\"a\\tb\"",
            ];
            assert_eq!(found, expected, "{old:?} {new:?}");
            for same in ["old.nut", "new.nut"] {
                let run = folder.run(&["diff", same, same]);
                assert_eq!((run.status, &run.stdout[..], &run.stderr[..]), (Some(0), "", ""));
            }
        }
    }
}

#[test]
fn json_has_an_object_for_each_key() {
    let folder = snapshots([&[], &[]]);
    let run = folder.run(&["diff", "old.nut", "new.nut", "--json"]);
    assert_eq!(run.status, Some(1));
    let mut found: Vec<_> = run.stdout.lines().collect();
    found.sort_unstable();
    let expected = [
        r#"{"change":"added","key":"added","new":[1,2]}"#,
        r#"{"change":"changed","key":"int","old":1,"new":1.0}"#,
        r#"{"change":"changed","key":"list","old":["ab","c"],"new":["a","bc"]}"#,
        r#"{"change":"removed","key":"removed\t1","old":"a\tb"}"#,
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_summary_has_counts_and_quiet_only_the_status() {
    let folder = snapshots([&[], &[]]);
    let run = folder.run(&["diff", "old.nut", "new.nut", "--summary"]);
    let expected = "removed  1\nadded    1\nchanged  2\nequal    2\n";
    assert_eq!((run.status, &run.stdout[..]), (Some(1), expected));
    let run = folder.run(&["diff", "old.nut", "new.nut", "--summary", "--json"]);
    let expected = "{\"removed\":1,\"added\":1,\"changed\":2,\"equal\":2}\n";
    assert_eq!((run.status, &run.stdout[..]), (Some(1), expected));
    let run = folder.run(&["diff", "new.nut", "new.nut", "--summary"]);
    let expected = "removed  0\nadded    0\nchanged  0\nequal    5\n";
    assert_eq!((run.status, &run.stdout[..]), (Some(0), expected));
    for (names, status) in [(["old.nut", "new.nut"], 1), (["old.nut", "old.nut"], 0)] {
        let run = folder.run(&[&["diff", "--quiet"], &names[..]].concat());
        assert_eq!((run.status, &run.stdout[..]), (Some(status), ""));
    }
}

#[test]
fn snapshots_of_many_entries_are_compared() {
    let folder = Folder::new();
    let rows = |keys: std::ops::Range<u32>| {
        let rows = keys.map(|n| row(&format!("key:{n}"), &n.to_string()));
        rows.collect::<Vec<_>>().join("\n")
    };
    folder.file("old.jsonl", rows(0..3_000)).file("new.jsonl", rows(1_000..4_500));
    folder.build(&["old.jsonl", "-o", "old.nut"]);
    folder.build(&["new.jsonl", "-o", "new.nut", "--shards", "4"]);
    let run = folder.run(&["diff", "old.nut", "new.nut", "--summary", "--json"]);
    let expected = "{\"removed\":1000,\"added\":1500,\"changed\":0,\"equal\":2000}\n";
    assert_eq!((run.status, &run.stdout[..]), (Some(1), expected));
    let run = folder.run(&["diff", "old.nut", "new.nut"]);
    assert_eq!((run.status, run.stdout.lines().count()), (Some(1), 2_500));
}

#[test]
fn damage_and_missing_files_are_exit_status_3() {
    let folder = snapshots([&[], &[]]);
    let mut bytes = folder.bytes("new.nut");
    let at = bytes.windows(5).position(|window| window == b"added").expect("the key");
    bytes[at] ^= 1;
    folder.file("bad.nut", bytes);
    for arguments in [["old.nut", "bad.nut"], ["bad.nut", "old.nut"], ["old.nut", "none.nut"]] {
        let run = folder.run(&["diff", arguments[0], arguments[1], "--quiet"]);
        let is_damaged_later = arguments == ["old.nut", "bad.nut"];
        assert_eq!(run.status, Some(if is_damaged_later { 1 } else { 3 }), "{arguments:?}");
        let run = folder.run(&["diff", arguments[0], arguments[1]]);
        assert_eq!(run.status, Some(3), "{arguments:?}");
        assert!(run.stderr.starts_with("nuthatch: "), "{}", run.stderr);
    }
    for arguments in [&["diff", "old.nut"][..], &["diff", "old.nut", "new.nut", "-q", "--json"]] {
        assert_eq!(folder.run(arguments).status, Some(2), "{arguments:?}");
    }
}
