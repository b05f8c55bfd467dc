//! Snapshots whose keys are served beside those of the cache.

use crate::folder::Folder;
use crate::server::{Running, wait_until};
use rustix::process::Signal;
use std::fs;

const ROWS: &str = r#"{"key": "name", "value": "Ada"}
{"key": "age", "value": 36}
{"key": "big", "value": -9223372036854775808}
{"key": "score", "value": 0.1}
{"key": "tiny", "value": 5e-324}
{"key": "huge", "value": 1e300}
{"key": "true", "value": true}
{"key": "ids", "value": [1, 2, 3]}
{"key": "scores", "value": [0.5, 1e17]}
{"key": "odd", "value": {"$f64": ["NaN", "-Infinity"]}}
{"key": "vector", "value": {"$f32": [0.1, 16777217]}}
{"key": "tags", "value": ["a \"b\"", "é"]}
{"key": "none", "value": []}
"#;

fn build(folder: &Folder, rows: &str, file: &str) {
    folder.file("rows.jsonl", rows);
    let run = folder.run(&["build", "rows.jsonl", "-o", file, "--quiet"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
}

/// Returns the text of a reply with one string.
fn text(reply: &str) -> String {
    let (head, rest) = reply.split_once("\r\n").expect("a head");
    assert!(head.starts_with('$'), "{reply}");
    rest.strip_suffix("\r\n").unwrap_or_default().to_owned()
}

fn get(server: &Running, key: &str) -> String {
    text(&server.ask(&format!("GET {key}")))
}

#[test]
fn clients_get_what_the_command_get_prints() {
    let folder = Folder::new();
    build(&folder, ROWS, "users.nut");
    let server = folder.serve(&["--snapshot=users=users.nut"], &[]);
    for key in ROWS.lines().map(|row| row.split('"').nth(3).expect("a key")) {
        let run = folder.run(&["get", "users.nut", key]);
        assert_eq!(format!("{}\n", get(&server, &format!("users:{key}"))), run.stdout, "{key}");
    }
    let (status, messages) = server.stop();
    assert_eq!((status, messages.as_str()), (Some(0), ""));
}

#[test]
fn top_has_the_snapshots_and_their_age() {
    let folder = Folder::new();
    build(&folder, ROWS, "users.nut");
    let server = folder.serve(&["--snapshot=users=users.nut", "--admin=127.0.0.1:0"], &[]);
    let run = folder.run(&["top", &server.admin, "--json", "--interval", "100ms"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{run:?}");
    let value: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let rows = value["tables"]["snapshots"]["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &rows[0]["name"]), (1, &"users".into()));
    assert_eq!(rows[0]["entries"].as_f64(), Some(13.0));
    assert!(rows[0]["age_seconds"].is_number(), "{value}");
}

#[test]
fn flags_variables_and_files_name_snapshots_and_prefixes() {
    let folder = Folder::new();
    fs::create_dir(folder.path("etc")).expect("a folder");
    build(&folder, r#"{"key": "k", "value": "first"}"#, "etc/a.nut");
    build(&folder, r#"{"key": "k", "value": "second"}"#, "b.nut");
    let both = ["--snapshot=a=etc/a.nut", "--snapshot=b=b.nut"];
    let usual = folder.serve(&both, &[]);
    assert_eq!((get(&usual, "a:k"), get(&usual, "b:k")), ("first".into(), "second".into()));
    // The line of the manual: the usual prefix can be given, too.
    let only = folder.serve(&["--snapshot=a=etc/a.nut", "--snapshot-prefix=a:"], &[]);
    assert_eq!(get(&only, "a:k"), "first");
    let other = folder.serve(&["--snapshot=a=etc/a.nut", "--snapshot-prefix=x/"], &[]);
    assert_eq!((get(&other, "x/k"), other.ask("GET a:k")), ("first".into(), "$-1\r\n".into()));
    let named = [&both[..], &["--snapshot-prefix=b=x=", "--snapshot-prefix=a=x=y"]].concat();
    let named = folder.serve(&named, &[]);
    assert_eq!((get(&named, "x=k"), get(&named, "x=yk")), ("second".into(), "first".into()));
    let variables =
        [("NUTHATCH_SNAPSHOT", "a=etc/a.nut, b=b.nut"), ("NUTHATCH_SNAPSHOT_PREFIX", "b=c:")];
    let listed = folder.serve(&[], &variables);
    assert_eq!((get(&listed, "a:k"), get(&listed, "c:k")), ("first".into(), "second".into()));
    folder.file("etc/n.toml", "snapshot = ['a=a.nut', 'b=../b.nut']\nsnapshot-prefix = 'a=z:'");
    let filed = folder.serve(&["--config=etc/n.toml"], &[]);
    assert_eq!((get(&filed, "z:k"), get(&filed, "b:k")), ("first".into(), "second".into()));
    // The output of --show-config is a settings file with the same snapshots.
    let shown = folder.run_serve(&["--config=etc/n.toml", "--show-config"], &[]);
    folder.file("shown.toml", &shown.stdout);
    let again = folder.serve(&["--config=shown.toml"], &[]);
    assert_eq!((get(&again, "z:k"), get(&again, "b:k")), ("first".into(), "second".into()));
}

#[test]
fn wrong_names_prefixes_and_files_are_refused() {
    let folder = Folder::new();
    build(&folder, r#"{"key": "k", "value": 1}"#, "a.nut");
    folder.file("text", "no snapshot, but long enough for a magic number");
    let (one, two) = ("--snapshot=a=a.nut", "--snapshot=b=a.nut");
    for (arguments, status, message) in [
        (&["--snapshot=a.nut"][..], 2, "--snapshot: expected NAME=PATH such as users="),
        (&["--snapshot=a="], 2, "--snapshot: expected NAME=PATH such as users="),
        (&["--snapshot=a b=a.nut"], 2, "--snapshot: expected a name of 1 to 64 letters, digits"),
        (&[one, one], 2, "--snapshot: expected each snapshot once, found a again"),
        (&[one, "--snapshot-prefix=a="], 2, "--snapshot: expected a prefix for snapshot a, found"),
        (
            &[one, "--snapshot-prefix=a=x", "--snapshot-prefix=y"],
            2,
            "--snapshot-prefix: expected one prefix for each snapshot, found a again",
        ),
        (&[one, "--snapshot-prefix=c=x"], 2, "--snapshot-prefix: expected the name of a snapshot"),
        (&[one, two, "--snapshot-prefix=x"], 2, "--snapshot-prefix: expected NAME=PREFIX, found"),
        (
            &[one, two, "--snapshot-prefix=a=b:"],
            2,
            "--snapshot: expected a prefix of its own for each snapshot, found \"b:\" for a and b",
        ),
        (&["--snapshot-prefix=x"], 2, "--snapshot-prefix: expected NAME=PREFIX, found \"x\""),
        (&["--snapshot=a=nothing.nut"], 3, "--snapshot: snapshot a: nothing.nut: stat: No such"),
        (&["--snapshot=a=text"], 3, "--snapshot: snapshot a: not a snapshot: text: at byte 0"),
        (&["--snapshot=a=."], 3, "--snapshot: snapshot a: .: open: not a regular file"),
    ] {
        let run = folder.run_serve(arguments, &[]);
        let expected = format!("nuthatch: {message}");
        assert!(run.stderr.starts_with(&expected), "{arguments:?}: {}", run.stderr);
        assert_eq!((run.status, &run.stdout[..]), (Some(status), ""), "{arguments:?}");
    }
}

/// Returns the memory of the machine or its control group in bytes.
fn memory() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").expect("meminfo");
    let total =
        meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split(' ').nth_back(1));
    let total: u64 = total.expect("a total").parse().expect("a number");
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    group.unwrap_or(u64::MAX).min(total << 10)
}

#[test]
fn a_snapshot_that_does_not_fit_beside_the_cache_is_refused_unless_it_is_allowed() {
    let folder = Folder::new();
    build(&folder, ROWS, "users.nut");
    // The budget alone fits, and leaves less than the snapshot has.
    let budget = format!("--memory={}", memory() - 1000);
    let arguments = [&budget, "--snapshot=users=users.nut"];
    let run = folder.run_serve(&arguments, &[]);
    assert!(
        run.stderr.starts_with("nuthatch: --snapshot: users has ")
            && run.stderr.contains("lower --memory, or set --snapshot-oversize allow"),
        "{}",
        run.stderr
    );
    assert_eq!(run.status, Some(2));
    let allowed = folder.serve(&[&arguments[1..], &["--snapshot-oversize=allow"]].concat(), &[]);
    assert_eq!(get(&allowed, "users:name"), "Ada");
}

#[test]
fn a_new_generation_serves_and_a_bad_one_does_not() {
    let folder = Folder::new();
    build(&folder, r#"{"key": "k", "value": "first"}"#, "a.nut");
    let server = folder.serve(&["--snapshot=a=a.nut"], &[]);
    build(&folder, r#"{"key": "k", "value": "second"}"#, "a.nut");
    wait_until("the new generation", || get(&server, "a:k") == "second");
    folder.file("bad", "not a snapshot, whatever its name says");
    fs::rename(folder.path("bad"), folder.path("a.nut")).expect("renamed");
    let is_logged = || server.messages().contains("the new generation is not used");
    wait_until("a message", is_logged);
    assert_eq!(get(&server, "a:k"), "second");
    // Snapshots are fixed while the server runs.
    build(&folder, r#"{"key": "k", "value": "third"}"#, "a.nut");
    wait_until("the new generation", || get(&server, "a:k") == "third");
    assert_eq!(server.stop().0, Some(0));
}

/// An earlier server has left items whose keys belong to a snapshot now.
#[test]
fn items_of_an_earlier_server_do_not_hide_keys_of_a_snapshot() {
    let folder = Folder::new();
    build(&folder, r#"{"key": "k", "value": "snapshot"}"#, "a.nut");
    let kept = ["--data-dir=data", "--warm-restart=true"];
    let before = folder.serve(&kept, &[]);
    before.ask("SET a:k cache\r\nSET a:other cache\r\nSET b cache");
    assert_eq!(before.stop().0, Some(0));

    let server = folder.serve(&[&kept[..], &["--snapshot=a=a.nut"]].concat(), &[]);
    wait_until("the items", || server.ask("GET b") == "$5\r\ncache\r\n");
    wait_until("all items", || server.ask("INFO").contains("restored_items:3"));
    assert_eq!(get(&server, "a:k"), "snapshot");
    assert_eq!(server.ask("GET a:other"), "$-1\r\n");
    assert_eq!(server.ask("KEYS *"), "*2\r\n$1\r\nb\r\n$3\r\na:k\r\n");
    assert!(server.ask("DEL a:other").starts_with("-ERR READONLY"));
    assert_eq!(server.stop().0, Some(0));

    // They are not lost.
    let after = folder.serve(&kept, &[]);
    wait_until("the items", || after.ask("GET a:other") == "$5\r\ncache\r\n");
}

#[test]
fn a_reload_does_not_change_snapshots_and_says_so() {
    let folder = Folder::new();
    build(&folder, r#"{"key": "k", "value": "first"}"#, "a.nut");
    folder.file("n.toml", "snapshot = 'a=a.nut'");
    let server = folder.serve(&["--config=n.toml"], &[]);
    folder.file("n.toml", "snapshot = ['a=a.nut', 'b=a.nut']");
    server.signal(Signal::HUP);
    wait_until("a message", || {
        server.messages().contains("snapshot was changed: it needs a restart")
    });
    assert_eq!((get(&server, "a:k"), server.ask("GET b:k")), ("first".into(), "$-1\r\n".into()));
}
