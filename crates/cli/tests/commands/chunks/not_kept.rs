//! Blocks that are not kept: `get` and `serve` report their number and the cause.

use super::origin::{Server, noise};
use super::serve::{Served, served_in};
use crate::folder::{Folder, Run};
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufReader;
use std::process::Command;

const LEN: usize = 2_500_000;

fn get(folder: &Folder, url: &str, more: &[&str]) -> Run {
    folder.run(&[&["chunks", "get", url, "--cache", "cache", "-o", "out"], more].concat())
}

/// Returns a metric from the admin endpoint of a server.
fn metric(served: &Served, name: &str) -> u64 {
    let admin = served.said[1].strip_prefix("metrics at ").expect("an address");
    let mut command = Command::new("curl");
    command.args(["--silent", "--noproxy", "*", admin]);
    let text = Run::of(command, b"").stdout;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect(name).parse().expect("a number")
}

const BUSY: &str = "nuthatch_chunks_not_kept_total{cause=\"busy\"}";
const NO_VERSION: &str = "nuthatch_chunks_not_kept_total{cause=\"no-version\"}";

#[test]
fn get_says_why_blocks_are_not_kept() {
    let origin = Server::new(noise(LEN, 1));
    origin.configure(|behaviour| behaviour.etag = Some("W/\"one\"".to_owned()));
    let folder = Folder::new();
    let run = get(&folder, &origin.url("/a"), &["--limit", "64MiB"]);
    let expected = "3 blocks not kept (the origin names no version of the object (no strong ETag, \
                and no Last-Modified at least 2 s old))";
    assert!(run.status == Some(0) && run.stderr.contains(expected), "{run:?}");
    let run = get(&folder, &origin.url("/a"), &["--json"]);
    let summary: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!(summary["not_kept"], 3);
    assert_eq!(summary["not_kept_by_cause"], json!({ "no-version": 3 }));
    origin.configure(|behaviour| behaviour.etag = Some("\"one\"".to_owned()));
    let holder = File::open(folder.path("cache")).expect("a folder");
    holder.lock().expect("a lock");
    let run = get(&folder, &origin.url("/b"), &["--json"]);
    let summary: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!(summary["not_kept_by_cause"], json!({ "busy": 3 }));
    drop(holder);
    let run = get(&folder, &origin.url("/b"), &["--json"]);
    let summary: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!((&summary["not_kept"], &summary["not_kept_by_cause"]), (&0.into(), &json!({})));
}

#[test]
fn a_server_warns_while_another_process_has_the_lock_and_serves_uncached() {
    let body = noise(40 << 20, 2);
    let origin = Server::new(body.clone());
    let mut served = served_in(Folder::new(), &origin.url("/"), &["--admin", "127.0.0.1:0"]);
    let mut log = BufReader::new(served.child.stderr.take().expect("its output"));
    // The server is another process than this one, which has the lock as one that was stopped has.
    let holder = File::open(served.folder.path("cache")).expect("a folder");
    holder.lock().expect("a lock");
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    let busy = metric(&served, BUSY);
    assert!(busy > 30, "{busy} of 40 blocks were not kept");
    let warning = "WARN nuthatch::chunks: blocks are not kept in the cache cause=\"busy\"";
    let logged = served.log_until(&mut log, warning);
    assert!(!logged.contains("kept in the cache again"), "{logged}");
    drop(holder);
    assert!(served.curl("/b", &["--range", "0-99"]).stdout_bytes == body[..100]);
    let logged = served.log_until(&mut log, "INFO nuthatch::chunks: blocks are kept in the cache");
    assert!(!logged.contains("WARN"), "one warning is enough: {logged}");
    assert_eq!(metric(&served, BUSY), busy);
}

#[test]
fn a_server_counts_and_logs_objects_whose_version_is_not_certain() {
    let origin = Server::new(noise(LEN, 3));
    origin.configure(|behaviour| behaviour.etag = Some("W/\"one\"".to_owned()));
    let mut served = served_in(Folder::new(), &origin.url("/"), &["--admin", "127.0.0.1:0"]);
    let mut log = BufReader::new(served.child.stderr.take().expect("its output"));
    for _ in 0..20 {
        assert_eq!(served.curl("/a", &["--output", "/dev/null"]).status, Some(0));
    }
    assert_eq!(metric(&served, NO_VERSION), 60);
    served.signal();
    let logged = served.log_until(&mut log, "stopped");
    let lines = logged.lines().filter(|line| line.contains("blocks of this object are not kept"));
    let lines: Vec<_> = lines.collect();
    assert!((5..20).contains(&lines.len()), "{logged}");
    let named = format!("address={} cause=\"no-version\"", origin.url("/a"));
    assert!(lines.iter().all(|line| line.contains(&named) && line.contains(" unlogged=")));
}
