//! Unavailable origins, and folders that cannot be used.

use super::get::terminal;
use super::origin::{Server, noise};
use crate::folder::{Folder, Run};
use serde_json::Value;
use std::io::Write;

const LEN: usize = 2_500_000;

fn get(folder: &Folder, address: &str, more: &[&str]) -> Run {
    folder.run(&[&["chunks", "get", address, "--cache", "cache"], more].concat())
}

/// Creates a folder with a whole object, whose origin fails from now on.
fn filled(server: &Server, body: &[u8]) -> Folder {
    let folder = Folder::new();
    let run = get(&folder, &server.url("/a"), &["--limit", "64MiB"]);
    assert!(run.stdout_bytes == body, "{}", run.stderr);
    server.configure(|behaviour| behaviour.statuses = vec![503; 10_000].into());
    server.clear_requests();
    folder
}

#[test]
fn cached_objects_are_read_while_the_origin_is_unavailable() {
    let body = noise(LEN, 1);
    let server = Server::new(body.clone());
    let folder = filled(&server, &body);
    for (more, requests) in [(&["--offline"][..], 0), (&["--max-stale", "1d"], 1)] {
        let run = get(&folder, &server.url("/a"), &[more, &["--json"]].concat());
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        assert!(run.stdout_bytes == body);
        let (warning, json) = run.stderr.split_once('\n').expect("two lines");
        let message = "nuthatch: warning: the origin did not confirm this version; it last did so ";
        assert!(warning.starts_with(message), "{warning}");
        let json: Value = serde_json::from_str(json).expect("a JSON object");
        assert_eq!((&json["stale"], &json["from_cache_bytes"]), (&true.into(), &LEN.into()));
        assert_eq!(server.requests().len(), requests, "{more:?}");
        server.clear_requests();
    }
    let run = get(&folder, &server.url("/a"), &["--max-stale", "0s", "--retries", "0"]);
    assert_eq!(run.status, Some(3));
    let expected = "the origin responded with 503; a version was confirmed ";
    assert!(run.stderr.contains(expected), "{run:?}");
    assert!(run.stderr.contains(" ago: --offline or --max-stale TIME reads "), "{run:?}");
    let run = get(&folder, &server.url("/b"), &["--offline"]);
    assert_eq!(run.status, Some(3));
    assert!(
        run.stderr.contains("/b: offline: the cache has no metadata of this object; "),
        "{run:?}"
    );
}

#[test]
fn cached_objects_are_read_while_the_origin_refuses_connections() {
    let body = noise(LEN, 7);
    let server = Server::new(body.clone());
    let folder = filled(&server, &body);
    server.refuse_connections();
    for more in ["--offline", "--max-stale=1d"] {
        let run = get(&folder, &server.url("/a"), &[more]);
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        assert!(run.stdout_bytes == body);
        let message = "nuthatch: warning: the origin did not confirm this version; it last did so ";
        assert!(run.stderr.starts_with(message), "{}", run.stderr);
    }
    let run = get(&folder, &server.url("/a"), &["--retries", "0"]);
    assert_eq!((run.status, run.stdout_bytes.len()), (Some(3), 0));
    let message = "no response from the origin: cannot connect: Connection refused";
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert!(run.stderr.contains(" ago: --offline or --max-stale TIME reads "), "{run:?}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_folder_that_cannot_be_opened_is_done_without_with_one_warning() {
    let (folder, body) = (Folder::new(), noise(LEN, 2));
    let server = Server::new(body.clone());
    folder.file("file", "no folder");
    let run = |more: &[&str]| {
        let at = ["chunks", "get", &server.url("/a"), "--cache", "file/cache"];
        folder.run(&[&at[..], more].concat())
    };
    let passed = run(&["--quiet"]);
    assert_eq!(passed.status, Some(0), "{}", passed.stderr);
    assert!(passed.stdout_bytes == body);
    assert_eq!(passed.stderr.lines().count(), 1, "{}", passed.stderr);
    let message = "nuthatch: warning: cannot open the folder ";
    assert!(passed.stderr.starts_with(message), "{}", passed.stderr);
    assert!(passed.stderr.contains("; reads pass through to the origin"), "{}", passed.stderr);
    let offline = run(&["--offline"]);
    assert_eq!((offline.status, &offline.stdout[..]), (Some(3), ""));
}

#[test]
fn fetched_bytes_and_bytes_of_the_range_are_counted_separately() {
    let folder = Folder::new();
    let server = Server::new(noise(LEN, 3));
    let run = get(&folder, &server.url("/a"), &["--range", "0-100", "--json"]);
    let json: Value = serde_json::from_str(&run.stderr).expect("a JSON object");
    let fetched = json["fetched_bytes"].as_u64().expect("a number");
    assert_eq!((&json["bytes"], &json["from_origin_bytes"]), (&100.into(), &100.into()));
    assert_eq!(fetched, 1 << 20, "a block is the least that is fetched");
    let run = get(&folder, &server.url("/b"), &["--range", "0-100"]);
    let message = "100 B from the origin in 1 requests that received 1.0 MiB";
    assert!(run.stderr.contains(message), "{}", run.stderr);
}

#[test]
fn a_lower_limit_reports_the_number_of_bytes_that_it_evicts() {
    let body = noise(12 << 20, 4);
    let server = Server::new(body.clone());
    let folder = Folder::new();
    let first = get(&folder, &server.url("/a"), &["--limit", "64MiB"]);
    assert!(first.stdout_bytes == body && !first.stderr.contains("evicts"), "{}", first.stderr);
    for yes in [&["--quiet"][..], &["--quiet", "--yes"]] {
        let limit = if yes.len() == 1 { "8MiB" } else { "6MiB" };
        let run =
            get(&folder, &server.url("/a"), &[&["--limit", limit, "--range", "-1"], yes].concat());
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        let message = format!("nuthatch: cache: the limit of {}.0 MiB evicted ", &limit[..1]);
        assert!(run.stderr.starts_with(&message), "{run:?}");
        assert!(run.stderr.trim_end().ends_with(" in use"), "{run:?}");
    }
    let same = get(&folder, &server.url("/a"), &["--limit", "6MiB", "--range", "-1", "--quiet"]);
    assert_eq!((same.status, &same.stderr[..]), (Some(0), ""));
}

#[test]
fn a_lower_limit_requires_a_confirmation_on_a_terminal() {
    let server = Server::new(noise(12 << 20, 6));
    let folder = Folder::new();
    get(&folder, &server.url("/a"), &["--limit", "64MiB", "--quiet"]);
    let address = server.url("/a");
    let arguments = ["chunks", "get", &address, "--cache", "cache", "--limit", "8MiB", "-o", "out"];
    let limit = || {
        let stat = folder.run(&["chunks", "stat", "--cache", "cache", "--json"]).stdout;
        let stat: Value = serde_json::from_str(&stat).expect("a JSON object");
        stat["limit_bytes"].as_u64().expect("a number")
    };
    let (mut person, open) = terminal();
    let held = open();
    for (said, status, expected) in [("n\n", 3, 64 << 20), ("\n", 3, 64 << 20), ("y\n", 0, 8 << 20)]
    {
        let mut command = folder.command(&[&arguments[..], &["--quiet"]].concat());
        person.write_all(said.as_bytes()).expect("a terminal");
        command.stdin(open()).stderr(open()).stdout(open());
        let ended = command.status().expect("its end");
        assert_eq!((ended.code(), limit()), (Some(status), expected), "{said:?}");
    }
    drop(held);
}

#[test]
fn a_pin_survives_a_new_version_and_ends_when_the_object_is_removed() {
    let server = Server::new(noise(LEN, 5));
    let folder = Folder::new();
    let address = server.url("/a");
    let run = |arguments: &[&str]| {
        let run = folder.run(&[&["chunks"], arguments, &["--cache", "cache"]].concat());
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        run.stdout
    };
    let pinned = || {
        let list = run(&["list", "--json"]);
        let lines = list.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let object = |line: Value| (line["validator"].to_string(), line["pinned"] == true);
        lines.map(object).collect::<Vec<_>>()
    };
    get(&folder, &address, &["--limit", "64MiB"]);
    assert_eq!(run(&["pin", &address]), "pinned: objects 1, chunks 3\n");
    server.configure(|behaviour| behaviour.etag = Some("\"two\"".into()));
    get(&folder, &address, &[]);
    let both = [("\"\\\"one\\\"\"".to_owned(), false), ("\"\\\"two\\\"\"".to_owned(), true)];
    let mut found = pinned();
    found.sort();
    assert_eq!(found, both);
    run(&["remove", &address]);
    get(&folder, &address, &[]);
    assert_eq!(pinned(), [("\"\\\"two\\\"\"".to_owned(), false)]);
}
