//! `nuthatch store serve`, and the other store commands through it.

use crate::folder::{Folder, row};
use crate::serve::stored::metrics;
use crate::tls::Certificate;
use nuthatch_testing::process::{proceed, stop};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

/// A store server, which is killed when this is dropped.
struct Served {
    folder: Folder,
    child: Child,
    address: String,
    /// Its standard error, and its standard output behind the first line.
    said: BufReader<ChildStderr>,
    lines: BufReader<ChildStdout>,
}

fn served(arguments: &[&str]) -> Served {
    served_at(Folder::new(), "127.0.0.1:0", arguments)
}

fn served_at(folder: Folder, listen: &str, arguments: &[&str]) -> Served {
    let serve = ["store", "serve", "db", "--create", "--listen", listen, "--threads", "1"];
    let mut child = folder
        .command(&[&serve, arguments].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command to start");
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    lines.read_line(&mut line).expect("a line");
    let address = line.trim_end().strip_prefix("listening at ").expect("an address").to_owned();
    let said = BufReader::new(child.stderr.take().expect("its errors"));
    Served { folder, child, address, said, lines }
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

    /// Makes the server reload its files. Returns the line that it logs.
    fn reload(&mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::HUP).expect("a signal");
        loop {
            let mut line = String::new();
            self.said.read_line(&mut line).expect("a line");
            assert!(!line.is_empty(), "it ended");
            if line.contains("reload") {
                return line;
            }
        }
    }

    #[track_caller]
    fn prints(&self, command: &str, arguments: &[&str], expected: &str) {
        let expected = (0, expected.to_owned(), String::new());
        assert_eq!(self.run(command, arguments), expected, "{command} {arguments:?}");
    }
}

#[test]
fn a_server_whose_file_is_truncated_returns_errors_and_keeps_running() {
    let served = served(&[]);
    served.prints("put", &["user:1", "Ada"], "");
    served.prints("get", &["user:1"], "Ada\n");
    let file = std::fs::File::options().write(true).open(served.folder.path("db/data.mdb"));
    file.and_then(|file| file.set_len(0)).expect("an empty file");
    for _ in 0..2 {
        for (command, arguments) in
            [("get", &["user:1"][..]), ("put", &["user:1", "x"]), ("scan", &[])]
        {
            let (status, stdout, stderr) = served.run(command, arguments);
            assert_eq!((status, &stdout[..]), (3, ""), "{command}: {stderr}");
            assert!(stderr.contains("damaged store: "), "{command}: {stderr}");
        }
    }
}

#[test]
fn a_damaged_leaf_of_a_server_is_an_error_for_every_command() {
    let served = served(&[]);
    let rows: Vec<_> = (0..400).map(|n| format!("key{n:04}\tvalue of {n}\n")).collect();
    std::fs::write(served.folder.path("rows.tsv"), rows.concat()).expect("a file");
    let (status, _, stderr) = served.run("load", &["rows.tsv", "--format", "tsv", "--quiet"]);
    assert_eq!(status, 0, "{stderr}");
    let path = served.folder.path("db/data.mdb");
    let mut bytes = std::fs::read(&path).expect("the file");
    // Where the free space of the leaf with this row begins and ends.
    let row = bytes.windows(9).rposition(|at| at == b"value of ").expect("a row");
    let key = String::from_utf8(bytes[row - 7..row].to_vec()).expect("its key");
    let leaf = row / 4096 * 4096;
    bytes[leaf + 12..leaf + 16].copy_from_slice(&[0xFF; 4]);
    let file = std::fs::File::options().write(true).open(&path);
    file.and_then(|file| file.write_all_at(&bytes[leaf..leaf + 16], leaf as u64)).expect("damage");
    let commands: [(&str, &[&str]); 8] = [
        ("scan", &[]),
        ("scan", &["--reverse"]),
        ("scan", &["--keys-only"]),
        ("dump", &["--quiet"]),
        ("count", &["--prefix", "key"]),
        ("get", &[&key]),
        ("backup", &["copy"]),
        ("backup", &["copy", "--compact"]),
    ];
    for (command, arguments) in commands {
        let (status, _, stderr) = served.run(command, arguments);
        assert_eq!(status, 3, "{command} {arguments:?}: {stderr}");
        assert!(stderr.contains("damaged store: "), "{command} {arguments:?}: {stderr}");
        assert!(stderr.contains("data.mdb: at byte "), "{command} {arguments:?}: {stderr}");
    }
    assert!(!served.folder.path("copy/data.mdb").exists(), "a damaged store is not copied");
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
    let copied = std::fs::metadata(served.folder.path("copy/data.mdb")).expect("the copy");
    assert_eq!(copied.permissions().mode() & 0o7777, 0o600, "its user alone can read it");
    let count = served.folder.run(&["store", "count", "copy"]);
    assert_eq!((count.status, &count.stdout[..]), (Some(0), "30000\n"), "{}", count.stderr);
    let whole = served.folder.run(&["store", "verify", "copy", "--quiet"]);
    assert_eq!(whole.status, Some(0), "{}", whole.stderr);
    let (status, _, stderr) = served.run("backup", &["copy"]);
    let expected = "copy: expected a folder without data.mdb for the copy, found one";
    assert!(status == 3 && stderr.contains(expected), "{stderr}");
    let (status, stat, _) = served.run("stat", &["--json"]);
    assert!(status == 0 && stat.contains("\"name\":\"default\",\"entries\":30000"), "{stat}");
    let (status, stat, _) = served.run("stat", &[]);
    assert!(status == 0 && stat.contains(&served.address), "{stat}");
}

#[test]
fn commands_that_need_the_files_refuse_an_address() {
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
fn tokens_are_required_and_presented() {
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
    for rule in ["`token NAME read|write SECRET`", ">TEXT", "# and the 64 hexadecimal digits"] {
        assert!(wrong.stderr.contains(rule), "{wrong:?}");
    }
}

#[test]
fn a_server_stops_on_sigterm() {
    let mut served = served(&[]);
    served.prints("put", &["a", "1"], "");
    kill_process(Pid::from_child(&served.child), Signal::TERM).expect("a signal");
    assert!(served.child.wait().expect("it ends").success());
    let got = served.folder.run(&["store", "get", "db", "a"]);
    assert_eq!((got.status, &got.stdout[..]), (Some(0), "1\n"));
}

#[test]
fn an_invalid_token_file_is_reported_with_the_rule() {
    let folder = Folder::new();
    for (text, found) in [
        ("", "found nothing"),
        ("one\ntwo\n", "found several lines"),
        ("to ken\n", "found a space or another character"),
    ] {
        folder.file("token", text);
        let run = folder.run(&["store", "get", "grpc://127.0.0.1:1", "a", "--token-file", "token"]);
        let rule = "token: expected one line with a token of printable ASCII without spaces";
        assert!(run.stderr.contains(rule) && run.stderr.contains(found), "{run:?}");
        assert_eq!(run.status, Some(3));
    }
}

#[test]
fn a_remote_watch_without_kept_changes_names_the_setting() {
    let served = served(&[]);
    served.prints("put", &["a", "1"], "");
    let (status, _, stderr) = served.run("watch", &[]);
    assert!(status == 3 && stderr.contains("--keep-changes N"), "{status} {stderr}");
}

#[test]
fn get_prints_the_version_of_a_remote_row() {
    let served = served(&[]);
    served.prints("put", &["s", "one", "--table", "t", "--stamped"], "");
    let (_, shown, _) = served.run("get", &["s", "--table", "t", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("a JSON object");
    let version = shown["version"].as_u64().expect("a version").to_string();
    served.prints("put", &["s", "two", "--table", "t", "--if-version", &version], "");
    assert_eq!(served.run("put", &["s", "three", "--table", "t", "--if-version", &version]).0, 1);
}

#[test]
fn a_killed_server_is_reported_in_one_line() {
    let mut served = served(&["--keep-changes", "10"]);
    served.prints("put", &["a", "1"], "");
    let mut watch = served
        .folder
        .command(&["store", "watch", &served.address, "--oldest", "--reconnect-ms", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command to start");
    let mut line = String::new();
    let mut changes = BufReader::new(watch.stdout.take().expect("its output"));
    changes.read_line(&mut line).expect("a change");
    served.child.kill().expect("killed");
    served.child.wait().expect("it ends");
    let ended = watch.wait_with_output().expect("it ends");
    let message = String::from_utf8(ended.stderr).expect("text");
    assert_eq!((ended.status.code(), message.lines().count()), (Some(3), 1), "{message}");
    let lost = format!("nuthatch: {}: the connection was lost", served.address);
    assert!(message.starts_with(&lost), "{message}");
    let reason = "could not connect: connection refused; is the server running?";
    let expected = (3, String::new(), format!("nuthatch: {}: {reason}\n", served.address));
    assert_eq!(served.run("get", &["a"]), expected);
}

/// Commands waited for ever.
#[test]
fn a_server_that_does_not_respond_is_reported_with_the_wait() {
    let served = served(&[]);
    served.prints("put", &["a", "1"], "");
    stop(&served.child);
    let patience = ["--timeout-ms", "50"];
    for (command, arguments) in [
        ("get", &["a"][..]),
        ("put", &["a", "2"]),
        ("scan", &[]),
        ("dump", &[]),
        ("watch", &[]),
        ("backup", &["copy"]),
    ] {
        let (status, stdout, stderr) = served.run(command, &[arguments, &patience].concat());
        assert_eq!((status, &stdout[..]), (3, ""), "{command}: {stderr}");
        let expected = "expected a response within 50ms, found none;";
        let start = format!("nuthatch: {}: {expected}", served.address);
        assert!(stderr.starts_with(&start), "{command}: {stderr}");
        assert!(stderr.contains("--timeout-ms") && stderr.lines().count() == 1, "{stderr}");
    }
    assert!(!served.folder.path("copy").exists(), "an empty folder is left");
    proceed(&served.child);
    served.prints("count", &[], "1\n");
}

/// A server with them started, and refused every call.
#[test]
fn limits_with_which_no_client_can_work_are_refused() {
    let folder = Folder::new();
    for (flag, value, least) in [
        ("--memory", "1", "expected at least 1.0 MiB, found 1 B"),
        ("--message", "0", "expected at least 4.0 KiB, found 0 B"),
        ("--message", "2GiB", "expected at most 1.0 GiB, found 2.0 GiB"),
        ("--longest-ms", "0", "100.."),
        ("--idle-ms", "0", "100.."),
        ("--keep-changes", "0", "1.."),
        ("--listen", "127.0.0.1:70000", "a port from 0 to 65535"),
    ] {
        let run = folder.run(&["store", "serve", "db", "--create", flag, value]);
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.contains(flag) && run.stderr.contains(least), "{run:?}");
    }
    let serve = ["store", "serve", "db", "--create", "--memory", "1MiB", "--message", "2MiB"];
    let run = folder.run(&serve);
    assert_eq!(run.status, Some(2), "{run:?}");
    let expected = "--message: expected at most the memory, 1.0 MiB, found 2.0 MiB";
    assert!(run.stderr.contains(expected), "{run:?}");
    assert!(!folder.path("db").exists());
    let serve = ["serve", "--store", "db", "--store-create", "--store-memory", "1KiB"];
    let run = folder.run(&serve);
    assert_eq!(run.status, Some(2), "{run:?}");
    let expected = "--store-memory: expected at least 1MiB, found 1KiB";
    assert!(run.stderr.contains(expected), "{run:?}");
}

/// Port 70000 led to the default port.
#[test]
fn ports_beyond_65535_are_refused() {
    let folder = Folder::new();
    let run = folder.run(&["store", "get", "grpc://127.0.0.1:70000", "a"]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(run.stderr.contains("127.0.0.1:70000: expected a port from 1 to 65535"), "{run:?}");
}

#[test]
fn an_address_in_use_is_an_error_that_names_its_flag() {
    let served = served(&["--admin", "127.0.0.1:0"]);
    let taken = served.address.strip_prefix("grpc://").expect("an address");
    let folder = &served.folder;
    let chunks = ["chunks", "serve", "--origin", "http://127.0.0.1:1/", "--cache", "cache"];
    let store = ["store", "serve", "db"];
    for (command, flag) in
        [(&store[..], "--listen"), (&chunks, "--listen"), (&store, "--admin"), (&chunks, "--admin")]
    {
        let free = ["--listen", "127.0.0.1:0"];
        let free = if flag == "--admin" { &free[..] } else { &[] };
        let run = folder.run(&[command, free, &[flag, taken]].concat());
        assert_eq!(run.status, Some(3), "{run:?}");
        let last = run.stderr.lines().last().expect("a message");
        assert!(last.starts_with(&format!("nuthatch: {flag}: ")), "{run:?}");
        assert!(last.contains(&format!("{taken}: Address already in use")), "{run:?}");
        let remedy = format!("; {flag} ADDR chooses another address\n");
        assert!(run.stderr.ends_with(&remedy), "{run:?}");
    }
}

/// The message was only that the connection was lost.
#[test]
fn a_wrong_scheme_is_reported() {
    let folder = Folder::new();
    certificates(&folder, "own");
    let path = |name: &str| folder.path(name).display().to_string();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let secure = served(&["--tls-cert", &cert, "--tls-key", &key]);
    let plain = served(&[]);
    let as_plain = secure.address.replace("grpcs://", "grpc://");
    let as_secure = plain.address.replace("grpc://", "grpcs://");
    for (address, remedy) in [
        (as_plain, "(if the server has TLS, use grpcs://)"),
        (as_secure, "the server does not speak TLS; expected grpc:// as the address"),
    ] {
        let run = folder.run(&["store", "get", &address, "a"]);
        assert_eq!(run.status, Some(3), "{run:?}");
        assert!(run.stderr.contains(remedy) && run.stderr.lines().count() == 1, "{run:?}");
    }
}

#[test]
fn times_of_zero_are_refused() {
    let folder = Folder::new();
    for flag in ["--timeout-ms", "--connect-timeout-ms"] {
        let run = folder.run(&["store", "get", "grpc://127.0.0.1:1", "a", flag, "0"]);
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.contains(flag) && run.stderr.contains("1.."), "{run:?}");
    }
}

#[test]
fn a_load_continues_after_its_server_restarts() {
    let mut served = served(&["--admin", "127.0.0.1:0"]);
    let mut line = String::new();
    served.lines.read_line(&mut line).expect("a line");
    let admin = line.strip_prefix("metrics at http://").and_then(|at| at.split('/').next());
    let admin = admin.expect("where metrics are").to_owned();
    let mut load = served
        .folder
        .command(&["store", "load", &served.address, "-", "--format", "jsonl", "--quiet"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command to start");
    while !metrics(&admin).contains("nuthatch_rpc_calls_total{method=\"Batch\"} 1\n") {}
    served.child.kill().expect("killed");
    served.child.wait().expect("it ends");
    let listen = served.address.strip_prefix("grpc://").expect("an address").to_owned();
    let folder = std::mem::replace(&mut served.folder, Folder::new());
    let rows: Vec<String> = (0..30_000).map(|n| row(&format!("{n:06}"), "\"v\"")).collect();
    let again = served_at(folder, &listen, &[]);
    let written = load.stdin.take().expect("a pipe").write_all(rows.join("\n").as_bytes());
    let ended = load.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    written.expect("rows");
    assert_eq!(ended.status.code(), Some(0));
    again.prints("count", &[], "30000\n");
}

#[test]
fn tokens_are_reloaded_and_bad_ones_are_not_used() {
    let folder = Folder::new();
    folder.file("tokens", "token app write >robin\n").file("old", "robin").file("new", "wren");
    let path = |name: &str| folder.text(name);
    let mut served = served(&["--tokens", &path("tokens"), "--log", "warn,nuthatch::rpc=info"]);
    let (old, new) = (path("old"), path("new"));
    served.prints("put", &["a", "1", "--token-file", &old], "");
    folder.file("tokens", "token app\n");
    let message = served.reload();
    let failed = " ERROR nuthatch::rpc: reload failed; the previous credentials stay in use";
    assert!(message.contains(failed) && message.contains("line 1"), "{message}");
    served.prints("get", &["a", "--token-file", &old], "1\n");
    folder.file("tokens", "token app write >wren\n");
    let message = served.reload();
    assert!(message.contains(" INFO nuthatch::rpc: tokens reloaded "), "{message}");
    served.prints("get", &["a", "--token-file", &new], "1\n");
    let (status, _, stderr) = served.run("get", &["a", "--token-file", &old]);
    assert!(status == 3 && stderr.contains("expected a token that the server knows"), "{stderr}");
}

/// Regression test: the log reported a reload of a certificate and tokens that did not exist.
#[test]
fn a_reload_without_credentials_says_that_there_is_nothing_to_reload() {
    let mut served = served(&["--log", "info"]);
    let expected = "nothing to reload: the server has no certificate and no tokens ";
    let message = served.reload();
    assert!(message.contains(expected), "{message}");
}

/// Writes a certificate authority and a certificate for this machine to files of a folder.
pub(crate) fn certificates(folder: &Folder, name: &str) {
    let Certificate { cert, key, issuer } = Certificate::new();
    folder.file(&format!("{name}.ca"), issuer).file("key.pem", key).file("cert.pem", cert);
}

#[test]
fn certificates_are_reloaded_and_those_that_the_system_trusts_are_accepted() {
    let folder = Folder::new();
    certificates(&folder, "one");
    let (cert, key) = (folder.text("cert.pem"), folder.text("key.pem"));
    let mut served = served(&["--tls-cert", &cert, "--tls-key", &key, "--log", "info"]);
    let port = served.address.rsplit(':').next().expect("a port");
    let address = format!("grpcs://localhost:{port}");
    let put = |system: &str, arguments: &[&str]| {
        let put = [&["store", "put", &address, "a", "1"], arguments].concat();
        let mut put = folder.command(&put);
        let put = put.env("SSL_CERT_FILE", folder.path(system)).env("SSL_CERT_DIR", "").output();
        let put = put.expect("a command");
        (put.status.code(), String::from_utf8(put.stderr).expect("text"))
    };
    assert_eq!(put("one.ca", &[]), (Some(0), String::new()));
    folder.file("cert.pem", "no certificate");
    let message = served.reload();
    let file = format!("{cert}: expected a certificate chain in PEM (BEGIN CERTIFICATE), found");
    assert!(message.contains("reload failed") && message.contains(&file), "{message}");
    assert_eq!(put("one.ca", &[]), (Some(0), String::new()));
    certificates(&folder, "two");
    let message = served.reload();
    assert!(message.contains(" INFO nuthatch::rpc: certificate reloaded "), "{message}");
    assert_eq!(put("two.ca", &[]), (Some(0), String::new()));
    let (status, message) = put("one.ca", &[]);
    let why = "its issuer is not trusted; the system's certificates were used";
    assert!(status == Some(3) && message.contains(why), "{message}");
    let one = folder.text("one.ca");
    let (status, message) = put("two.ca", &["--tls-ca", &one]);
    assert!(
        status == Some(3) && message.contains(&format!("those of {one} were used")),
        "{message}"
    );
    let (status, message) = put("none.ca", &[]);
    assert!(status != Some(0) && message.contains("none.ca: expected certificates"), "{message}");
}
