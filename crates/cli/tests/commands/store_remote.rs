//! `nuthatch store serve`, and the other commands of a store over it.

use crate::folder::{Folder, row};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

/// A store that is served. The server is killed when this is dropped.
struct Served {
    folder: Folder,
    child: Child,
    address: String,
}

fn served(arguments: &[&str]) -> Served {
    let folder = Folder::new();
    let serve = ["store", "serve", "db", "--create", "--listen", "127.0.0.1:0", "--threads", "1"];
    let mut child = folder
        .command(&[&serve, arguments].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command to start");
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    lines.read_line(&mut line).expect("a line");
    let address = line.trim_end().strip_prefix("listening at ").expect("an address").to_owned();
    Served { folder, child, address }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn run(&self, command: &str, arguments: &[&str]) -> (i32, String, String) {
        let run = self.folder.run(&[&["store", command, &self.address], arguments].concat());
        (run.status.expect("an exit status"), run.stdout, run.stderr)
    }

    #[track_caller]
    fn prints(&self, command: &str, arguments: &[&str], expected: &str) {
        let expected = (0, expected.to_owned(), String::new());
        assert_eq!(self.run(command, arguments), expected, "{command} {arguments:?}");
    }
}

#[test]
fn commands_work_over_the_network_as_in_a_folder() {
    let served = served(&["--keep-changes", "100"]);
    for (key, value) in [("user:1", "Ada"), ("user:2", "Grace"), ("zebra", "a\tb")] {
        served.prints("put", &[key, value], "");
    }
    served.prints("get", &["user:1"], "Ada\n");
    served.prints("get", &["zebra", "user:1"], "zebra\ta\\tb\nuser:1\tAda\n");
    let (status, stdout, stderr) = served.run("get", &["none", "user:2"]);
    assert_eq!((status, &stdout[..]), (1, "user:2\tGrace\n"));
    assert_eq!(stderr, format!("nuthatch: {}: no key \"none\"\n", served.address));
    assert_eq!(served.run("put", &["user:1", "x", "--if-absent"]).0, 1);
    served.prints("put", &["user:1", "Ada L.", "--if-equals", "Ada"], "");
    served.prints("scan", &["--prefix", "user:"], "user:1\tAda L.\nuser:2\tGrace\n");
    served.prints("scan", &["--reverse", "--limit", "1", "--keys-only"], "zebra\n");
    served.prints("count", &["--prefix", "user:"], "2\n");
    let dumped =
        [row("user:1", "\"Ada L.\""), row("user:2", "\"Grace\""), row("zebra", "\"a\\tb\"")];
    served.prints("dump", &["--quiet"], &(dumped.join("\n") + "\n"));
    assert_eq!(served.run("del", &["user:1", "none"]).0, 1);
    served.prints("del", &["--prefix", "user:"], "1 keys\n");
    let (status, changes, _) = served.run("watch", &["--oldest", "--limit", "2"]);
    assert_eq!((status, changes.lines().count()), (0, 2));
    assert!(changes.starts_with("{\"sequence\":1,"), "{changes}");
    served.prints("put", &["token", "t", "--table", "s", "--expires-in-ms", "3600000"], "");
    served.prints("get", &["token", "--table", "s"], "t\n");
}

#[test]
fn rows_are_loaded_and_copies_fetched_over_the_network() {
    let served = served(&[]);
    let rows: Vec<String> = (0..30_000).map(|n| row(&format!("{n:06}"), "\"v\"")).collect();
    served.folder.file("rows.jsonl", rows.join("\n"));
    served.prints("load", &["rows.jsonl", "--quiet"], "");
    served.prints("count", &[], "30000\n");
    served.prints("backup", &["copy", "--quiet"], "");
    let count = served.folder.run(&["store", "count", "copy"]);
    assert_eq!((count.status, &count.stdout[..]), (Some(0), "30000\n"), "{}", count.stderr);
    let whole = served.folder.run(&["store", "verify", "copy", "--quiet"]);
    assert_eq!(whole.status, Some(0), "{}", whole.stderr);
    let (status, _, stderr) = served.run("backup", &["copy"]);
    assert!(status == 3 && stderr.contains("copy/data.mdb"), "{stderr}");
    let (status, stat, _) = served.run("stat", &["--json"]);
    assert!(status == 0 && stat.contains("\"name\":\"default\",\"entries\":30000"), "{stat}");
    let (status, stat, _) = served.run("stat", &[]);
    assert!(status == 0 && stat.contains(&served.address), "{stat}");
}

#[test]
fn what_needs_the_files_says_so() {
    let served = served(&[]);
    served.folder.file("rows.jsonl", row("a", "\"v\""));
    for (command, arguments, problem) in [
        ("compact", &[][..], "expected the folder of a store, found an address"),
        ("verify", &[], "expected the folder of a store, found an address"),
        ("watch", &["--keep", "5"], "--keep needs the folder of the store"),
        ("load", &["rows.jsonl", "--append"], "--append needs the folder of the store"),
    ] {
        let (status, _, stderr) = served.run(command, arguments);
        assert!(status == 2 && stderr.contains(problem), "{command}: {status} {stderr}");
    }
    let (status, _, stderr) = served.run("get", &["a"]);
    let problem =
        format!("nuthatch: {}: expected a table \"default\", found none\n", served.address);
    assert_eq!((status, stderr), (3, problem));
}

#[test]
fn tokens_are_asked_for_and_shown() {
    let folder = Folder::new();
    folder
        .file("tokens", "token app write >robin\n")
        .file("right", "robin\n")
        .file("wrong", "wren");
    let tokens = folder.path("tokens").display().to_string();
    let served = served(&["--tokens", &tokens]);
    let [right, wrong] = ["right", "wrong"].map(|name| folder.path(name).display().to_string());
    served.prints("put", &["a", "1", "--token-file", &right], "");
    for arguments in [&["a"][..], &["a", "--token-file", &wrong]] {
        let (status, _, stderr) = served.run("get", arguments);
        assert!(status == 3 && stderr.contains("token"), "{status} {stderr}");
    }
}

#[test]
fn a_server_that_anybody_could_use_does_not_start() {
    let folder = Folder::new();
    folder.run(&["store", "put", "db", "a", "1"]);
    let open = folder.run(&["store", "serve", "db", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.status, Some(2));
    assert!(open.stderr.contains("expected TLS, found none; --insecure allows it"), "{open:?}");
    let missing = folder.run(&["store", "serve", "none", "--listen", "127.0.0.1:0"]);
    assert_eq!(missing.status, Some(3), "{missing:?}");
    assert!(!folder.path("none").exists());
    folder.file("tokens", "token a b\n");
    let wrong = folder.run(&["store", "serve", "db", "--tokens", "tokens"]);
    assert_eq!(wrong.status, Some(3));
    assert!(wrong.stderr.contains("tokens: line 1 of the tokens: expected"), "{wrong:?}");
}

#[test]
fn a_server_stops_when_it_is_asked_to() {
    let mut served = served(&[]);
    served.prints("put", &["a", "1"], "");
    kill_process(Pid::from_child(&served.child), Signal::TERM).expect("a signal");
    assert!(served.child.wait().expect("it ends").success());
    let got = served.folder.run(&["store", "get", "db", "a"]);
    assert_eq!((got.status, &got.stdout[..]), (Some(0), "1\n"));
}
