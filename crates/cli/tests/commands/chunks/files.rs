//! Files of a cache that cannot be opened are reported and kept.

use super::origin::{Server, noise};
use super::warnings::{filled, run_as_another_user, set_modes};
use crate::folder::{Folder, Run};
use nuthatch_chunks::{Chunks, Options};
use serde_json::Value;
use std::process::Command;

const LEN: usize = 2_500_000;

#[test]
fn a_segment_that_cannot_be_read_is_not_treated_as_absent() {
    let origin = Server::new(noise(LEN, 1));
    let folder = filled(&origin);
    set_modes(&folder, 0o777, 0o666);
    let segment = "cache/0000000000000001.seg";
    folder.mode(segment, 0o000);
    let refused = format!("nuthatch: {segment}: Permission denied (os error 13)\n");
    let url = origin.url("/a");
    let run = |arguments: &[&str]| {
        let run =
            run_as_another_user(&folder, &[&["chunks"], arguments, &["--cache", "cache"]].concat());
        assert_eq!(run.status, Some(3), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(&refused), "{arguments:?}: {}", run.stderr);
        run
    };
    let list = run(&["list"]);
    assert_eq!(list.stdout, "no objects\n");
    let expected = "nuthatch: cache: 1 segments could not be read; chunks in them are not listed\n";
    assert!(list.stderr.ends_with(expected), "{}", list.stderr);
    assert!(run(&["stat"]).stdout.contains("; 1 cannot be read\n"));
    let stat: Value = serde_json::from_str(&run(&["stat", "--json"]).stdout).expect("JSON");
    assert_eq!(stat["segments_unreadable"], 1);
    run(&["verify"]);
    for command in ["pin", "unpin", "remove"] {
        let expected = "1 segments could not be read; objects in them stay as they were\n";
        assert!(run(&[command, &url]).stderr.ends_with(expected), "{command}");
    }
    // Nothing was lost.
    folder.mode(segment, 0o666);
    let list = folder.run(&["chunks", "list", "--cache", "cache", "--json"]);
    assert_eq!(list.status, Some(0), "{}", list.stderr);
    let object: Value = serde_json::from_str(&list.stdout).expect("a JSON object");
    assert_eq!(object["cached_bytes"], LEN);
}

/// Runs a command with a limit of open files.
fn run_with_files(folder: &Folder, files: u32, arguments: &[&str]) -> Run {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files} && exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_nuthatch")).args(arguments);
    command.current_dir(folder.path("."));
    Run::of(command, b"")
}

#[test]
fn a_command_that_may_open_too_few_files_names_the_limit_and_loses_nothing() {
    let body = noise(LEN, 2);
    let origin = Server::new(body.clone());
    let folder = Folder::new();
    let url = origin.url("/a");
    let mut failures = 0;
    for files in (6..32).step_by(2) {
        let get = ["chunks", "get", &url, "--cache", "cache", "--limit", "64MiB", "-o", "out"];
        let run = run_with_files(&folder, files, &get);
        if run.status == Some(0) {
            assert!(folder.bytes("out") == body, "{files} files");
            std::fs::remove_file(folder.path("out")).expect("a file");
            continue;
        }
        failures += 1;
        let expected =
            format!("this process may have {files} open files: raise the limit (`ulimit -n`");
        assert!(run.stderr.contains(&expected), "{files} files: {}", run.stderr);
        assert!(!folder.path("out").exists(), "{files} files");
    }
    assert!(failures > 0, "the first ones have too few files");
    let run = run_with_files(&folder, 64, &["chunks", "verify", "--cache", "cache"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    let got = folder.run(&["chunks", "get", &url, "--cache", "cache", "-o", "out"]);
    assert_eq!(got.status, Some(0), "{}", got.stderr);
    assert!(folder.bytes("out") == body);
}

#[test]
fn more_segments_than_files_that_may_be_open_are_all_listed() {
    let folder = Folder::new();
    let options = Options::new().limit(64 << 20).segment_len(256 << 10);
    let chunks = Chunks::open(folder.path("cache"), &options).expect("a cache");
    let object = chunks.blocks("https://host/a", "\"v1\"", 10 << 20, 64 << 10).expect("an object");
    for block in 0..160 {
        object.put(block << 16, &noise(64 << 10, block)).expect("a put");
    }
    assert!(chunks.stat().segments > 30);
    drop(chunks);
    for command in ["list", "verify", "stat"] {
        let run = run_with_files(&folder, 16, &["chunks", command, "--cache", "cache", "--json"]);
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{command}");
        let json: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
        match command {
            "list" => assert_eq!(json["cached_bytes"], 10 << 20),
            "verify" => assert_eq!(json["valid_chunks"], 160),
            _ => assert_eq!(json["segments_unreadable"], 0),
        }
    }
}
