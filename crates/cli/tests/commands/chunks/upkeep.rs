//! Maintenance of a cache: eviction, pins, removal and verification.

use crate::folder::{Folder, Run};
use nuthatch_chunks::{Chunks, Key, Options};
use serde_json::Value;

/// Creates a folder with a cache of three objects.
fn filled() -> Folder {
    let folder = Folder::new();
    let chunks = Chunks::open(folder.path("cache"), &Options::new().limit(64 << 20));
    let chunks = chunks.expect("a cache");
    let half = chunks.blocks("https://host/half", "\"v1\"", 4000, 1000).expect("an object");
    half.put(1000, &[1; 2000]).expect("a put");
    let whole = chunks.blocks("https://host/whole", "\"v2\"", 2500, 1000).expect("an object");
    whole.put(0, &[2; 2500]).expect("a put");
    let named = Key::named("a\nname").expect("a key");
    chunks.put(&named, 0..1, &[0, 9], b"some data").expect("a put");
    folder
}

fn run(folder: &Folder, arguments: &[&str]) -> Run {
    folder.run(&[&["chunks"], arguments, &["--cache", "cache"]].concat())
}

#[track_caller]
fn prints(folder: &Folder, arguments: &[&str]) -> String {
    let run = run(folder, arguments);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{arguments:?}");
    run.stdout
}

#[track_caller]
fn json(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let text = prints(folder, &[arguments, &["--json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect()
}

fn names(folder: &Folder) -> Vec<String> {
    let name = |object: Value| object["name"].as_str().expect("a name").to_owned();
    json(folder, &["list"]).into_iter().map(name).collect()
}

#[test]
fn a_cache_is_described() {
    let folder = filled();
    let text = prints(&folder, &["stat"]);
    assert!(text.starts_with("folder    cache\nlimit     64.0 MiB\nin use    "), "{text}");
    let stat = &json(&folder, &["stat"])[0];
    assert_eq!((&stat["chunks"], &stat["limit_bytes"]), (&6.into(), &(64 << 20).into()));
    assert_eq!(stat["folder"], "cache");
    let text = prints(&folder, &["list"]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0].split_whitespace().next(), Some("cached"), "{text}");
    assert!(lines[1].ends_with("https://host/whole  \"v2\""), "{text}");
    assert!(lines[1].contains(" 100 % "), "{text}");
    assert!(lines[2].contains(" 50 % ") && lines[2].contains("https://host/half"), "{text}");
    assert!(lines[3].ends_with(" a\\nname"), "{text}");
    let list = json(&folder, &["list", "--sort", "name"]);
    assert_eq!(list[0]["name"], "a\nname");
    assert_eq!((&list[0]["kind"], &list[0]["cached_bytes"]), (&"named".into(), &9.into()));
    assert_eq!(list[1]["validator"], "\"v1\"");
    assert_eq!((&list[1]["object_bytes"], &list[1]["cached_bytes"]), (&4000.into(), &2000.into()));
    assert_eq!((&list[1]["chunks"], &list[1]["pinned"]), (&2.into(), &false.into()));
    assert!(list[1]["put_ms"].as_u64() > Some(1_700_000_000_000), "{list:?}");
    for order in ["size", "put", "uses"] {
        assert_eq!(json(&folder, &["list", "--sort", order]).len(), 3);
    }
}

#[test]
fn damaged_chunks_are_named_and_set_the_exit_status() {
    let folder = filled();
    let text = prints(&folder, &["verify"]);
    assert!(text.starts_with("cache: valid: 6 chunks, 4.4 KiB, "), "{text}");
    assert_eq!(prints(&folder, &["verify", "--quiet"]), "");
    let path = "cache/0000000000000001.seg";
    let mut bytes = folder.bytes(path);
    let at = bytes.windows(9).position(|window| window == b"some data").expect("the data");
    bytes[at] ^= 4;
    folder.file(path, bytes);
    let damaged = run(&folder, &["verify", "--json"]);
    assert_eq!(damaged.status, Some(1));
    let message = format!("nuthatch: {path}: chunk 0 of a\\nname is damaged\n");
    assert_eq!(damaged.stderr, message);
    let summary: Value = serde_json::from_str(&damaged.stdout).expect("a JSON object");
    assert_eq!((&summary["damaged_chunks"], &summary["valid_chunks"]), (&1.into(), &5.into()));
    assert_eq!(summary["damaged"][0]["name"], "a\nname");
    assert_eq!(run(&folder, &["verify"]).status, Some(0), "it is gone");
    assert_eq!(names(&folder).len(), 2);
    let mut bytes = folder.bytes(path);
    bytes[0] ^= 4;
    folder.file(path, bytes);
    let damaged = run(&folder, &["verify"]);
    assert_eq!(damaged.status, Some(1));
    assert_eq!(damaged.stderr, format!("nuthatch: {path}: 5 damaged chunks of unknown objects\n"));
    assert!(damaged.stdout.starts_with("cache: 5 damaged chunks removed; "), "{damaged:?}");
}

#[test]
fn objects_are_pinned_and_removed_by_name() {
    let folder = filled();
    let text = prints(&folder, &["pin", "https://host/half"]);
    assert_eq!(text, "pinned: objects 1, chunks 2\n");
    let cleared = prints(&folder, &["clear"]);
    assert!(cleared.starts_with("cache: ") && cleared.ends_with(" now\n"), "{cleared}");
    assert_eq!(names(&folder), ["https://host/half"]);
    assert!(prints(&folder, &["list"]).contains("   yes  https://host/half"));
    let missing = run(&folder, &["unpin", "https://host/half", "none\n"]);
    assert_eq!(missing.status, Some(1));
    assert_eq!(missing.stdout, "not pinned: objects 1, chunks 2\n");
    assert_eq!(missing.stderr, "nuthatch: cache: no object \"none\\n\"\n");
    let removed = json(&folder, &["remove", "--prefix", "https://"]);
    assert_eq!((&removed[0]["objects"], &removed[0]["chunks"]), (&1.into(), &2.into()));
    assert_eq!(prints(&folder, &["list"]), "no objects\n");
    assert_eq!(run(&folder, &["remove"]).status, Some(2), "all is not removed by mistake");
}

/// Regression test: these commands changed the cache, and the error only named the full disk.
#[test]
fn the_error_of_a_summary_that_cannot_be_printed_contains_the_changes() {
    let folder = filled();
    for (arguments, done) in [
        (&["pin", "https://host/half"][..], "the change was made: pinned: objects 1, chunks 2"),
        (&["unpin", "https://host/half"], "the change was made: not pinned: objects 1, chunks 2"),
        (&["verify"], "the result is: cache: valid: 6 chunks, 4.4 KiB, "),
        (&["verify", "--json"], "the result is: {\"valid_chunks\":6,"),
        (&["remove", "https://host/half"], "the change was made: removed: objects 1, chunks 2"),
        (&["prune", "--to", "1KiB"], "the change was made: cache: "),
        (&["clear", "--json"], "the change was made: {\"before_bytes\":"),
    ] {
        let arguments = [&["chunks"], arguments, &["--cache", "cache"]].concat();
        let (status, message) = folder.run_with_full_output(&arguments);
        assert_eq!(status, Some(3), "{arguments:?}: {message}");
        let error = "nuthatch: <stdout>: write: No space left on device (os error 28); ";
        assert!(message.starts_with(&format!("{error}{done}")), "{arguments:?}: {message}");
    }
    assert_eq!(names(&folder), [""; 0]);
    for arguments in
        [["chunks", "stat", "--cache", "cache"], ["chunks", "list", "--cache", "cache"]]
    {
        let (status, message) = folder.run_with_full_output(&arguments);
        assert_eq!(status, Some(3), "{arguments:?}: {message}");
        assert!(message.ends_with("No space left on device (os error 28)\n"), "{message}");
    }
}

#[test]
fn old_and_excess_chunks_are_evicted() {
    let folder = filled();
    assert_eq!(prints(&folder, &["prune", "--older-than", "1h", "--quiet"]), "");
    assert_eq!(names(&folder).len(), 3);
    let pruned = &json(&folder, &["prune", "--to", "1KiB"])[0];
    assert!(pruned["after_bytes"].as_u64() < pruned["before_bytes"].as_u64(), "{pruned}");
    assert_eq!(names(&folder), [""; 0]);
    let wrong = run(&folder, &["prune", "--older-than", "5"]);
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.stderr.contains("expected a time such as 12h or 30d"), "{}", wrong.stderr);
}

#[test]
fn no_cache_is_made_where_there_is_none() {
    let folder = Folder::new();
    folder.file("data.txt", "precious");
    for command in [&["stat"][..], &["list"], &["verify"], &["clear"], &["prune"], &["pin", "a"]] {
        for place in [".", "nowhere"] {
            let run = folder.run(&[&["chunks"], command, &["--cache", place]].concat());
            assert_eq!(run.status, Some(3), "{command:?}");
            assert_eq!(run.stderr, format!("nuthatch: {place}: expected a cache, found none\n"));
        }
    }
    let get = folder.run(&["chunks", "get", "data.txt", "--cache", "."]);
    assert_eq!(get.status, Some(3));
    let message = "nuthatch: .: expected a cache or an empty folder, found other files\n";
    assert_eq!(get.stderr, message);
    assert!(!folder.path("nowhere").exists() && !folder.path("index").exists());
}

#[test]
fn the_folder_is_named_by_the_environment() {
    let folder = filled();
    let stat = |variables: &[(&str, &str)]| {
        let mut command = folder.command(&["chunks", "stat", "--json"]);
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME").envs(variables.iter().copied());
        Run::of(command, b"")
    };
    assert_eq!(stat(&[("NUTHATCH_CACHE", "cache")]).status, Some(0));
    let cache = folder.text("cache");
    assert_eq!(stat(&[("NUTHATCH_CACHE", &cache), ("HOME", "/nowhere")]).status, Some(0));
    let missing = stat(&[("XDG_CACHE_HOME", "/nowhere")]);
    assert_eq!(missing.status, Some(3));
    let message = "nuthatch: /nowhere/nuthatch/chunks: expected a cache, found none\n";
    assert_eq!(missing.stderr, message);
    let message = stat(&[("HOME", "/nowhere")]).stderr;
    assert!(message.starts_with("nuthatch: /nowhere/.cache/nuthatch/chunks: "), "{message}");
    assert_eq!(stat(&[]).status, Some(2));
}
