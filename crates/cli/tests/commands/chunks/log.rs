//! The log targets of `serve`, compared with docs/operations.md.

use super::origin::{Server, noise};
use super::serve::served_in;
use crate::folder::Folder;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const OPERATIONS: &str = include_str!("../../../../../docs/operations.md");

#[test]
fn lines_that_clients_can_cause_are_limited_by_kind() {
    let origin = Server::new(noise(1000, 1));
    let served = served_in(Folder::new(), &origin.url("/"), &[]);
    for status in [500, 403] {
        origin.configure(|behaviour| behaviour.statuses = vec![status; 10_000].into());
        // One connection, so that all of them come within a short time.
        let answered = served.curl("/[1-40]", &["--output", "/dev/null"]);
        assert_eq!(answered.status, Some(0), "{}", answered.stderr);
    }
    served.signal();
    let logged = served.stopped();
    for reason in ["the origin responded with 500", "access denied: status 403"] {
        let lines = logged.lines().filter(|line| line.contains(reason)).collect::<Vec<_>>();
        assert!((5..40).contains(&lines.len()), "{reason}: {} lines: {logged}", lines.len());
        let is_right = |line: &&&str| {
            line.contains("WARN nuthatch::chunks: a request failed") && line.contains(" unlogged=")
        };
        assert_eq!(lines.iter().filter(is_right).count(), lines.len(), "{logged}");
    }
    assert!(OPERATIONS.contains("limited to five of each kind in ten seconds"));
    assert!(OPERATIONS.contains("The field `unlogged`"));
}

/// Adds the targets that source files below a folder log to.
fn targets_below(folder: &Path, targets: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            targets_below(&path, targets);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let quoted = text.split("\"nuthatch::").skip(1);
            let name = |rest: &str| {
                let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
                format!("nuthatch::{}", &rest[..end])
            };
            targets.extend(quoted.map(name));
        }
    }
}

#[test]
fn every_target_of_the_log_is_documented() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut targets = BTreeSet::new();
    for name in ["server", "rpc", "origins", "cli"] {
        targets_below(&crates.join(name).join("src"), &mut targets);
    }
    assert!(targets.contains("nuthatch::chunks") && targets.contains("nuthatch::server"));
    for target in targets {
        assert!(OPERATIONS.contains(&format!("| `{target}` |")), "{target} is not in the table");
    }
}
