//! A limit that cannot be applied is an error, and evicts nothing.

use super::origin::{Server, noise};
use super::serve::{served_by, served_in};
use super::warnings::{filled, run_as_another_user, set_modes};
use crate::folder::{Folder, Run};
use serde_json::Value;
use std::fs::File;
use std::io::BufReader;

const LEN: usize = 2_500_000;

fn get<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["chunks", "get", url, "--cache", "cache", "--quiet", "-o", "/dev/null"], more].concat()
}

fn serve<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let listen = ["--listen", "127.0.0.1:0"];
    [&["chunks", "serve", "--origin", url, "--cache", "cache"], &listen[..], more].concat()
}

/// Returns the limit of the cache and the bytes in use.
fn limit_and_used(folder: &Folder) -> (u64, u64) {
    let stat = folder.run(&["chunks", "stat", "--cache", "cache", "--json"]).stdout;
    let stat: Value = serde_json::from_str(&stat).expect("a JSON object");
    let number = |name: &str| stat[name].as_u64().expect("a number");
    (number("limit_bytes"), number("used_bytes"))
}

#[track_caller]
fn is_refused(run: &Run, expected: &str) {
    assert_eq!((run.status, &run.stdout[..]), (Some(2), ""), "{run:?}");
    assert!(run.stderr.contains(expected) && !run.stderr.contains("evict"), "{}", run.stderr);
}

#[test]
fn a_limit_below_4_mib_is_refused_before_anything_is_evicted() {
    let origin = Server::new(noise(LEN, 1));
    let folder = filled(&origin);
    let before = limit_and_used(&folder);
    let url = origin.url("/a");
    for arguments in [get(&url, &["--limit", "2MiB"]), serve(&url, &["--limit", "4194303"])] {
        is_refused(&folder.run(&arguments), "expected at least 4.0 MiB");
    }
    assert_eq!(limit_and_used(&folder), before);
    let least = folder.run(&get(&url, &["--limit", "4MiB"]));
    assert_eq!(least.status, Some(0), "{}", least.stderr);
    assert_eq!(limit_and_used(&folder).0, 4 << 20);
}

#[test]
fn a_limit_that_a_read_only_folder_does_not_have_is_refused_and_evicts_nothing() {
    let origin = Server::new(noise(12 << 20, 2));
    let folder = filled(&origin);
    let before = limit_and_used(&folder);
    set_modes(&folder, 0o555, 0o444);
    let url = origin.url("/a");
    let expected = "--limit: expected 67108864, as in the folder, which this process can only \
                    read, found 8388608";
    for arguments in [get(&url, &["--limit", "8MiB"]), serve(&url, &["--limit", "8MiB"])] {
        is_refused(&run_as_another_user(&folder, &arguments), expected);
    }
    let shared = get(&url, &["--share-with-group"]);
    is_refused(&run_as_another_user(&folder, &shared), "--share-with-group: expected false");
    let same = run_as_another_user(&folder, &get(&url, &["--limit", "64MiB"]));
    assert_eq!(same.status, Some(0), "{}", same.stderr);
    set_modes(&folder, 0o700, 0o600);
    assert_eq!(limit_and_used(&folder), before);
}

#[test]
fn a_limit_of_a_folder_that_cannot_be_opened_is_not_ignored() {
    let origin = Server::new(noise(12 << 20, 3));
    let url = origin.url("/a");
    let folder = Folder::new();
    folder.file("cache", "no folder");
    let run = folder.run(&get(&url, &["--limit", "8MiB", "--share-with-group"]));
    is_refused(&run, "--limit and --share-with-group: not applied: cannot open the folder cache");
    // The options are not applied either while another process has the lock of the folder.
    let folder = filled(&origin);
    let before = limit_and_used(&folder);
    let holder = File::open(folder.path("cache")).expect("a folder");
    holder.lock().expect("a lock");
    let run = folder.run(&get(&url, &["--limit", "8MiB"]));
    is_refused(&run, "--limit: not applied: cache: another process or thread has held its lock");
    drop(holder);
    assert_eq!(limit_and_used(&folder), before);
}

#[test]
fn chunks_that_a_limit_cannot_evict_are_reported() {
    let origin = Server::new(noise(12 << 20, 4));
    let folder = filled(&origin);
    let url = origin.url("/a");
    assert_eq!(folder.run(&["chunks", "pin", &url, "--cache", "cache"]).status, Some(0));
    let run = folder.run(&get(&url, &["--limit", "4MiB"]));
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let expected = "; the rest is pinned, or other processes are writing it\n";
    assert!(run.stderr.contains("nuthatch: cache: the limit of 4.0 MiB evicted "), "{run:?}");
    assert!(run.stderr.ends_with(expected), "{}", run.stderr);
}

#[test]
fn a_server_reports_once_what_its_limit_evicts() {
    let origin = Server::new(noise(12 << 20, 6));
    let folder = filled(&origin);
    let (_, before) = limit_and_used(&folder);
    assert!(before > 12 << 20, "{before}");
    let serve = ["chunks", "serve", "--cache", "cache", "--limit", "8MiB"];
    let command = folder.command(&[&serve[..], &["--listen", "127.0.0.1:0"]].concat());
    let served = served_by(folder, command, &origin.url("/"), &[]);
    let (limit, used) = limit_and_used(&served.folder);
    assert!(limit == 8 << 20 && used <= limit, "{used} of {limit}");
    served.signal();
    let logged = served.stopped();
    let reports: Vec<_> = logged.lines().filter(|line| line.contains("evict")).collect();
    let [report] = reports[..] else { panic!("{logged}") };
    assert!(report.starts_with("nuthatch: cache: the limit of 8.0 MiB evicted "), "{report}");
    assert!(report.ends_with(" in use"), "{report}");
}

#[test]
fn a_server_logs_that_another_process_changed_the_limit() {
    let origin = Server::new(noise(LEN, 5));
    let mut served = served_in(Folder::new(), &origin.url("/"), &[]);
    let mut log = BufReader::new(served.child.stderr.take().expect("its output"));
    let url = origin.url("/a");
    let run = served.folder.run(&get(&url, &["--limit", "32MiB"]));
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    // The server reads the limit at most once a second, when an object is opened.
    let asking = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            served.log_until(&mut log, "WARN nuthatch::chunks: the limit of the cache was changed")
        });
        while !asking.is_finished() {
            served.curl("/a", &["--range", "0-0"]);
        }
        asking.join().expect("a line")
    });
    assert!(asking.contains("limit=33554432 before=67108864"), "{asking}");
    // Other processes read the new limit, too.
    assert_eq!(limit_and_used(&served.folder).0, 32 << 20);
}
