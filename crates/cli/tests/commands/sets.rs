//! Metadata, and sets of shards, through the commands.

use crate::folder::{Folder, lines};

#[test]
fn metadata_is_built_in_and_printed() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1")]));
    folder.build(&[
        "a.jsonl",
        "-o",
        "a.nut",
        "--meta",
        "name=users",
        "--meta=source=a=b\t",
        "--meta",
        "empty=",
    ]);
    let run = folder.run(&["info", "a.nut"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    for line in [
        "metadata          ",
        "  \"empty\"         \"\"",
        "  \"name\"          \"users\"",
        "  \"source\"        \"a=b\\t\"",
    ] {
        assert!(run.stdout.contains(line), "{line} in {}", run.stdout);
    }
    let run = folder.run(&["info", "a.nut", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!(
        info["metadata"],
        serde_json::json!({"empty": "", "name": "users", "source": "a=b\t"})
    );
    assert_eq!((&info["shards"], &info["metadata_bytes"]), (&0.into(), &42.into()));
    // The last of several values of a name counts.
    folder.build(&["a.jsonl", "-o", "a.nut", "--meta", "name=old", "--meta", "name=new"]);
    assert!(folder.run(&["info", "a.nut"]).stdout.contains("  \"name\"          \"new\""));
    folder.build(&["a.jsonl", "-o", "a.nut"]);
    assert!(!folder.run(&["info", "a.nut"]).stdout.contains("metadata"));
}

#[test]
fn wrong_metadata_is_an_error_that_says_what_is_expected() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1")]));
    let long = "n".repeat(256);
    for (meta, expected) in [
        ("name", "expected NAME=VALUE"),
        ("=users", "expected a name of 1 to 255 bytes before the ="),
        (&format!("{long}=users"), "expected a name of 1 to 255 bytes before the ="),
    ] {
        let run = folder.run(&["build", "a.jsonl", "-o", "a.nut", "--meta", meta]);
        assert_eq!(run.status, Some(2), "{meta}");
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    assert!(!folder.path("a.nut").exists());
}

#[test]
fn a_set_is_built_and_read_by_all_commands_as_one_file_is() {
    let folder = Folder::new();
    let rows: Vec<_> = (0..300).map(|row| (format!("key {row}"), row.to_string())).collect();
    let rows: Vec<_> = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    folder.file("a.jsonl", lines(&rows));
    folder.build(&["a.jsonl", "-o", "file.nut"]);
    folder.build(&["a.jsonl", "-o", "set.nut", "--shards", "4", "--meta", "name=numbers"]);
    let sorted = |name: &str| {
        let mut rows = folder.rows(name);
        rows.sort();
        rows
    };
    assert_eq!(sorted("set.nut"), sorted("file.nut"));
    let get = |name: &str| folder.run(&["get", name, "key 7", "key 299", "absent", "--json"]);
    assert_eq!((get("set.nut").status, get("set.nut").stdout), (Some(1), get("file.nut").stdout));
    let info = folder.run(&["info", "set.nut"]).stdout;
    for line in
        ["shards            4\n", "entries           300\n", "  \"name\"          \"numbers\"\n"]
    {
        assert!(info.contains(line), "{line} in {info}");
    }
    let verify = folder.run(&["verify", "set.nut"]);
    assert_eq!(verify.status, Some(0), "{}", verify.stderr);
    // A damaged shard is named.
    let shard = shards(&folder).into_iter().next().expect("a shard");
    let mut bytes = folder.bytes(&shard);
    let last = bytes.len() - 600;
    bytes[last] ^= 1;
    folder.file(&shard, &bytes);
    let verify = folder.run(&["verify", "set.nut"]);
    assert_eq!(verify.status, Some(3), "{}", verify.stderr);
    assert!(verify.stderr.contains(&shard), "{}", verify.stderr);
    // The next build publishes the shard again.
    folder.build(&["a.jsonl", "-o", "set.nut", "--shards", "4"]);
    assert_eq!(shards(&folder).len(), 4);
}

/// Returns the names of the shards in a folder.
fn shards(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(".")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let shards = paths.filter(|path| path.extension().is_some_and(|found| found == "shard"));
    let names = shards.map(|path| path.file_name().expect("a name").to_str().map(String::from));
    let mut names: Vec<_> = names.map(|name| name.expect("UTF-8")).collect();
    names.sort();
    names
}

#[test]
fn a_set_needs_a_path_and_shards_in_range() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1")]));
    let run = folder.run(&["build", "a.jsonl", "-o", "-", "--shards", "2"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(2), ""));
    let expected = "--shards: expected a path for --output, found standard output";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    for shards in ["0", "65537", "two"] {
        let run = folder.run(&["build", "a.jsonl", "-o", "a.nut", "--shards", shards]);
        assert_eq!(run.status, Some(2), "{shards}");
    }
    let run =
        folder.run(&["build", "a.jsonl", "-o", "a.nut", "--shards", "65536", "--memory", "32M"]);
    assert_eq!(run.status, Some(3));
    assert!(
        run.stderr.contains("shards within this memory budget (16 KiB for each): at most"),
        "{}",
        run.stderr
    );
}
