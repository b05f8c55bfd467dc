//! Several processes with one folder.

use crate::server::{Server, noise};
use crate::{BLOCK, quick};
use nuthatch_chunks::Options;
use nuthatch_origins::ObjectCache;
use nuthatch_testing::process::stop;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The environment variables with the address that the child reads and the folder of its cache.
const URL: &str = "NUTHATCH_TEST_URL";
const FOLDER: &str = "NUTHATCH_TEST_FOLDER";

fn cache(folder: &Path) -> ObjectCache {
    let options = Options::new().limit(64 << 20).min_free(0);
    ObjectCache::open(folder, &options, quick()).expect("a cache")
}

/// The child process of the other tests. Does nothing without its variables.
#[test]
fn child() {
    let (Some(folder), Ok(url)) = (std::env::var_os(FOLDER), std::env::var(URL)) else { return };
    let cache = cache(Path::new(&folder));
    let object = cache.object_blocking(&url).expect("an object");
    let mut all = vec![0; object.object().len() as usize];
    object.read_at(0, &mut all).expect("bytes");
    std::io::stderr().write_all(&all).expect("the parent reads");
}

/// Each request waited 30 s for the process that was stopped, and nothing said why.
#[test]
fn a_stopped_process_that_holds_a_fetch_lock_is_waited_for_once() {
    let body = noise(8 * BLOCK as usize, 3);
    let server = Server::new(body.clone());
    let folder = TempDir::new().expect("a folder");
    let url = server.url("/a");
    let options = Options::new().limit(64 << 20).min_free(0);
    let settings =
        quick().read_ahead(0).max_request_len(BLOCK).fetch_lock_wait(Duration::from_millis(20));
    let cache = ObjectCache::open(folder.path(), &options, settings).expect("a cache");
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let mut stopped = spawn(folder.path(), &url);
    // It holds the fetch lock of all blocks of its one request.
    server.wait_for_requests(1, 1);
    stop(&stopped);
    server.configure(|behaviour| behaviour.holds_bodies = false);
    let object = cache.object_blocking(&url).expect("an object");
    let mut part = vec![0; BLOCK as usize];
    for at in (0..body.len()).step_by(part.len()) {
        object.read_at(at as u64, &mut part).expect("bytes");
        assert!(part == body[at..at + part.len()], "other bytes at {at}");
    }
    let timeouts = object.object().counts().fetch_lock_timeouts;
    assert_eq!((timeouts, cache.counts().fetch_lock_timeouts), (1, 1));
    stopped.kill().expect("a dead child");
    stopped.wait().expect("its end");
}

fn spawn(folder: &Path, url: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "processes::child", "--nocapture"]);
    command.env(FOLDER, folder).env(URL, url).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("a child")
}

fn read_by(child: Child) -> Vec<u8> {
    let output = child.wait_with_output().expect("the end of the child");
    assert!(output.status.success());
    output.stderr
}

#[test]
fn processes_wait_for_the_one_that_fetches() {
    let body = noise(40 * BLOCK as usize + 11, 1);
    let server = Server::new(body.clone());
    let folder = TempDir::new().expect("a folder");
    let url = server.url("/a");
    cache(folder.path());
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let children: Vec<_> = (0..3).map(|_| spawn(folder.path(), &url)).collect();
    // All three have opened the object, and one of them fetches it.
    server.wait_for_requests(3, 1);
    server.configure(|behaviour| behaviour.holds_bodies = false);
    for child in children {
        assert!(read_by(child) == body, "a child read other bytes");
    }
    let mut ranges = server.ranges();
    ranges.sort_by_key(|range| range.start);
    let fetched: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert_eq!(fetched, body.len() as u64, "each block was fetched once: {ranges:?}");
}

#[test]
fn another_process_fetches_after_the_fetching_one_died() {
    let body = noise(4 * BLOCK as usize, 2);
    let server = Server::new(body.clone());
    let folder = TempDir::new().expect("a folder");
    let url = server.url("/a");
    cache(folder.path());
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let mut first = spawn(folder.path(), &url);
    server.wait_for_requests(1, 1);
    let second = spawn(folder.path(), &url);
    server.wait_for_requests(2, 1);
    first.kill().expect("a dead child");
    first.wait().expect("its end");
    server.configure(|behaviour| behaviour.holds_bodies = false);
    assert!(read_by(second) == body, "the second child read other bytes");
}
