//! `verify` of several files.

use crate::folder::{Folder, lines};
use serde_json::Value;

/// Returns a folder with a valid file, a damaged one, and one that is no snapshot.
fn files() -> Folder {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1"), ("string", "\"text\"")]));
    folder.build(&["a.jsonl", "-o", "good.nut"]);
    let mut bytes = folder.bytes("good.nut");
    let at = bytes.windows(6).position(|window| window == b"string").expect("the key");
    bytes[at] ^= 1;
    folder.file("bad.nut", bytes).file("text", "not a snapshot");
    folder
}

#[test]
fn all_files_are_checked_even_if_one_fails() {
    let folder = files();
    let run = folder.run(&["verify", "bad.nut", "good.nut", "none.nut", "text", "good.nut"]);
    assert_eq!(run.status, Some(3));
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.stdout);
    assert!(lines.iter().all(|line| line.starts_with("good.nut: valid: 2 entries, ")));
    let messages: Vec<_> = run.stderr.lines().collect();
    for (message, start) in messages.iter().zip([
        "nuthatch: damaged file: bad.nut: at byte ",
        "nuthatch: none.nut: open: ",
        "nuthatch: not a snapshot: text: at byte 0: expected ",
    ]) {
        assert!(message.starts_with(start), "{message}");
    }
    assert_eq!(messages.len(), 3, "{}", run.stderr);
    let run = folder.run(&["verify", "good.nut", "bad.nut", "--quiet"]);
    assert_eq!((run.status, &run.stdout[..], run.stderr.lines().count()), (Some(3), "", 1));
    let run = folder.run(&["verify", "good.nut", "good.nut", "--quiet"]);
    assert_eq!((run.status, &run.stdout[..], &run.stderr[..]), (Some(0), "", ""));
}

#[test]
fn json_has_an_object_for_each_file() {
    let folder = files();
    let run = folder.run(&["verify", "good.nut", "bad.nut", "none.nut", "text", "--json"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(3), ""));
    let objects = run.stdout.lines().map(serde_json::from_str::<Value>);
    let objects = objects.collect::<Result<Vec<_>, _>>().expect("JSON objects");
    let of = |field: &str| objects.iter().map(|o| o[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("file"), ["good.nut", "bad.nut", "none.nut", "text"]);
    assert_eq!(of("ok"), [true, false, false, false]);
    assert_eq!(objects[0]["entries"], 2);
    assert_eq!(objects[0]["file_bytes"], folder.bytes("good.nut").len());
    let codes: Vec<_> = objects.iter().map(|object| &object["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &"corrupt".into(), &"io".into(), &"not-a-snapshot".into()]);
    let (damage, missing) = (&objects[1]["error"], &objects[2]["error"]);
    assert!(damage["offset"].is_u64() && damage["file"] == "bad.nut", "{damage}");
    let message = format!(
        "damaged file: bad.nut: at byte {}: expected {}, found {}",
        damage["offset"],
        damage["expected"].as_str().expect("text"),
        damage["found"].as_str().expect("text")
    );
    assert_eq!(damage["message"], message);
    let nulls = ["offset", "expected", "found"].map(|field| missing[field].is_null());
    assert_eq!((nulls, &missing["file"]), ([true; 3], &Value::from("none.nut")));
}

#[test]
fn the_error_of_a_set_names_the_shard() {
    let folder = files();
    folder.build(&["a.jsonl", "-o", "set.nut", "--shards", "2"]);
    let entries = std::fs::read_dir(folder.path(".")).expect("a folder");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let shard = paths.find(|path| path.extension().is_some_and(|found| found == "shard"));
    let shard = shard.expect("a shard").file_name().expect("a name").display().to_string();
    std::fs::remove_file(folder.path(&shard)).expect("removing the shard");
    let run = folder.run(&["verify", "set.nut", "--json"]);
    assert_eq!(run.status, Some(3));
    let object: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(object["file"], "set.nut");
    let damaged = object["error"]["file"].as_str().expect("a path");
    assert!(damaged.ends_with(&shard), "{damaged}");
}

#[test]
fn verify_needs_a_file_and_prints_quietly_or_as_json() {
    let folder = files();
    for arguments in [&["verify"][..], &["verify", "good.nut", "--json", "--quiet"]] {
        assert_eq!(folder.run(arguments).status, Some(2), "{arguments:?}");
    }
    let (status, message) = folder.run_with_full_output(&["verify", "good.nut", "--json"]);
    assert_eq!(status, Some(3));
    assert!(message.contains("\"ok\":true"), "{message}");
}
