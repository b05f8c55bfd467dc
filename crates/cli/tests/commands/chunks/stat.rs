//! `nuthatch chunks stat`: warnings and numbers.

use crate::folder::Folder;
use nuthatch_chunks::{Chunks, Key, Options};
use serde_json::Value;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

fn cache(folder: &Folder) -> Chunks {
    Chunks::open(folder.path("cache"), &Options::new().limit(64 << 20)).expect("a cache")
}

#[test]
fn stat_warns_of_a_folder_that_other_users_may_use() {
    let folder = Folder::new();
    drop(cache(&folder));
    let arguments = ["chunks", "stat", "--cache", "cache"];
    let run = folder.run(&arguments);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "a new folder is private");
    set_permissions(folder.path("cache"), Permissions::from_mode(0o755)).expect("a mode");
    let run = folder.run(&arguments);
    assert_eq!(run.status, Some(0));
    assert!(run.stderr.starts_with("nuthatch: warning: ") && run.stderr.contains("0755"));
    assert!(run.stdout.contains("displaced 0\n"), "{}", run.stdout);
    assert!(run.stdout.contains("\nsegments  0, of which 0 not sealed\n"), "{}", run.stdout);
    let evicted = "\nevicted   0 segments; 0 B of used chunks were moved instead of evicted\n";
    assert!(run.stdout.contains(evicted), "{}", run.stdout);
}

#[test]
fn stat_counts_chunks_that_were_displaced() {
    let folder = Folder::new();
    let chunks = Chunks::open(folder.path("cache"), &Options::new().limit(4 << 20));
    let (chunks, key) = (chunks.expect("a cache"), Key::named("an object").expect("a key"));
    let offsets: Vec<_> = (0..=1000).map(|number| number * 10).collect();
    let put = |first| {
        let stored = chunks.put(&key, first..first + 1000, &offsets, &[7; 10_000]);
        stored.expect("a put").displaced
    };
    // More than an index has room for that takes a quarter of the limit.
    let displaced: u64 = (0..80_000).step_by(1000).map(put).sum();
    assert!(displaced > 18_000, "{displaced}");
    let stat = ["chunks", "stat", "--cache", "cache", "--json"];
    let json: Value = serde_json::from_str(&folder.run(&stat).stdout).expect("a JSON object");
    assert_eq!(json["chunks_displaced"], displaced);
    let text = folder.run(&stat[..4]).stdout;
    let digits = |line: &str| line.chars().filter(char::is_ascii_digit).collect::<String>();
    let line = text.lines().find(|line| line.contains("displaced ")).expect("a line");
    let (_, number) = line.split_once("displaced ").expect("a number");
    assert_eq!(digits(number), displaced.to_string(), "{text}");
}

#[test]
fn stat_counts_what_is_there_and_what_was_displaced() {
    let folder = Folder::new();
    let chunks = cache(&folder);
    let key = Key::named("an object").expect("a key");
    for chunk in 0..9000 {
        let stored = chunks.put(&key, chunk..chunk + 1, &[0, 10], &[7; 10]).expect("a put");
        assert_eq!((stored.stored, stored.displaced), (1, 0));
    }
    let run = folder.run(&["chunks", "stat", "--json", "--cache", "cache"]);
    let stat: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!((&stat["chunks"], &stat["chunks_displaced"]), (&9000.into(), &0.into()));
    assert_eq!(stat["read_only"], false);
}
