//! `nuthatch tier stat` and `nuthatch tier verify`.

use crate::folder::Folder;
use nuthatch_tier::{Options, Record, RecordId, Tier};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const STAT: [&str; 3] = ["tier", "stat", "tier"];
const VERIFY: [&str; 3] = ["tier", "verify", "tier"];

fn options() -> Options {
    Options::new(4 << 20)
}

/// Appends `count` items, of which the first one has expired.
fn append(tier: &mut Tier, count: u64) {
    for number in 0..count {
        let key = format!("key:{number}");
        let expires_ms = (number == 0).then_some(1);
        let record = Record {
            key: key.as_bytes(),
            value: &[7; 1000],
            hash: number,
            expires_ms,
            ..Record::default()
        };
        tier.append(&record).expect("appended");
    }
    tier.flush().expect("flushed");
}

/// Returns a folder with a closed tier of `count` items.
fn closed(count: u64) -> Folder {
    let folder = Folder::new();
    let (mut tier, _) = Tier::open(folder.path("tier"), &options()).expect("a tier");
    append(&mut tier, count);
    tier.close().expect("closed");
    folder
}

fn json(folder: &Folder, arguments: &[&str], status: i32) -> Value {
    let run = folder.run(&[arguments, &["--json"]].concat());
    assert_eq!(run.status, Some(status), "{}", run.stderr);
    serde_json::from_str(&run.stdout).expect("a JSON object")
}

fn first_items(folder: &Folder) -> PathBuf {
    folder.path("tier").join("items-0000000001.log")
}

#[test]
fn stat_counts_records_and_files() {
    let folder = closed(10);
    let stat = json(&folder, &STAT, 0);
    assert_eq!((&stat["state"], &stat["records"]), (&"closed".into(), &10.into()));
    assert_eq!(
        (&stat["files"], &stat["files_sealed"], &stat["damaged"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert_eq!(stat["record_bytes"], 10 * 1040);
    assert!(stat["oldest_age_ms"].as_u64().expect("an age") < 600_000);
    let run = folder.run(&STAT);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    let removals = "removals  0 entries, 0 B in 0 files of the removal log\n";
    for line in
        ["state     closed\n", "files     1, of which 0 not sealed\n", removals, "damaged   0\n"]
    {
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
}

#[test]
fn stat_counts_removals() {
    let folder = Folder::new();
    let (mut tier, _) = Tier::open(folder.path("tier"), &options()).expect("a tier");
    append(&mut tier, 10);
    let removals = tier.removals().expect("a removal log");
    removals.append(&[RecordId { file: 1, unit: 260 }]).expect("appended");
    removals.append_changed(&[7, 8]).expect("appended");
    tier.close().expect("closed");
    let stat = json(&folder, &STAT, 0);
    assert_eq!((&stat["removal_entries"], &stat["removal_log_files"]), (&3.into(), &1.into()));
    assert!(stat["removal_log_bytes"].as_u64().expect("a length") >= 4096);
    let run = folder.run(&STAT);
    assert!(run.stdout.contains("removals  3 entries, "), "{}", run.stdout);
}

#[test]
fn a_tier_whose_server_died_is_valid_and_not_changed() {
    let folder = Folder::new();
    let (mut tier, _) = Tier::open(folder.path("tier"), &options()).expect("a tier");
    append(&mut tier, 3);
    let run = folder.run(&STAT);
    assert_eq!(run.status, Some(3));
    let expected = format!("process {} uses this folder", std::process::id());
    assert!(run.stderr.contains(&expected), "{}", run.stderr);
    assert_eq!(folder.run(&VERIFY).status, Some(3));
    drop(tier);
    let before = fs::read(first_items(&folder)).expect("a file");
    let stat = json(&folder, &STAT, 0);
    assert_eq!((&stat["state"], &stat["records"]), (&"not closed".into(), &3.into()));
    assert_eq!(stat["files_sealed"], 0);
    let verified = json(&folder, &VERIFY, 0);
    assert_eq!(
        (&verified["valid_records"], &verified["incomplete_batch"]),
        (&3.into(), &false.into())
    );
    assert!(fs::read(first_items(&folder)).expect("a file") == before);
}

#[test]
fn verify_names_what_is_damaged() {
    let folder = closed(10);
    let run = folder.run(&VERIFY);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    assert!(run.stdout.starts_with("tier: valid: 10 records in 1 files, "), "{}", run.stdout);
    let mut bytes = fs::read(first_items(&folder)).expect("a file");
    bytes[5000] ^= 1;
    fs::write(first_items(&folder), &bytes).expect("a file");
    let run = folder.run(&VERIFY);
    assert_eq!(run.status, Some(1));
    let message =
        "tier/items-0000000001.log: offset 4096: expected a batch, found another checksum";
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert!(run.stdout.contains("1 damaged place; valid: 0 records"), "{}", run.stdout);
    let verified = json(&folder, &VERIFY, 1);
    assert_eq!(verified["damaged"][0]["offset"], 4096);
    assert_eq!(verified["damaged"][0]["file"], "items-0000000001.log");
    let run = folder.run(&["tier", "verify", "--quiet", "tier"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(1), ""));
}

#[test]
fn a_folder_that_is_no_tier_is_an_error() {
    let folder = Folder::new();
    folder.file("file", "text");
    fs::create_dir(folder.path("empty")).expect("a folder");
    for (name, message) in [
        ("absent", "No such file or directory"),
        ("file", "expected a folder, found another kind of file"),
        ("empty", "expected the manifest of a folder of items, found no such file"),
    ] {
        for command in ["stat", "verify"] {
            let run = folder.run(&["tier", command, name]);
            assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{name}");
            assert!(run.stderr.contains(message), "{}", run.stderr);
        }
    }
}
