//! `nuthatch store`.

use crate::folder::{Folder, lines, row};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Creates a store with some users.
fn users() -> Folder {
    let folder = Folder::new();
    for (key, value) in [("user:1", "Ada"), ("user:2", "Grace"), ("zebra", "a\tb\\")] {
        assert_eq!(run(&folder, &["put", "db", key, value]), (0, String::new(), String::new()));
    }
    folder
}

fn run(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let run = folder.run(&[&["store"], arguments].concat());
    (run.status.expect("an exit status"), run.stdout, run.stderr)
}

#[track_caller]
fn prints(folder: &Folder, arguments: &[&str], expected: &str) {
    let expected = (0, expected.to_owned(), String::new());
    assert_eq!(run(folder, arguments), expected, "{arguments:?}");
}

#[test]
fn a_value_that_was_put_is_read() {
    let folder = users();
    prints(&folder, &["get", "db", "user:1"], "Ada\n");
    prints(&folder, &["get", "db", "zebra"], "a\tb\\\n");
    prints(&folder, &["get", "db", "zebra", "user:1"], "zebra\ta\\tb\\\\\nuser:1\tAda\n");
    prints(&folder, &["get", "db", "user:1", "--json"], &(row("user:1", "\"Ada\"") + "\n"));
    prints(&folder, &["get", "db", "user:1", "zebra", "--raw"], "Adaa\tb\\");
    let missing = run(&folder, &["get", "db", "none", "user:2"]);
    let message = "nuthatch: db: no key \"none\"\n".to_owned();
    assert_eq!(missing, (1, "user:2\tGrace\n".to_owned(), message));
    let put = folder.run_with(&["store", "put", "db", "bin", "-"], b"\xff\0");
    assert_eq!(put.status, Some(0));
    prints(
        &folder,
        &["get", "db", "bin", "--json"],
        "{\"key\":\"bin\",\"value\":{\"$bytes\":\"/wA=\"}}\n",
    );
}

#[test]
fn scans_take_bounds() {
    let folder = users();
    prints(&folder, &["scan", "db", "--prefix", "user:"], "user:1\tAda\nuser:2\tGrace\n");
    prints(&folder, &["scan", "db", "--after", "user:1", "--keys-only"], "user:2\nzebra\n");
    prints(&folder, &["scan", "db", "--from", "user:2", "--before", "z"], "user:2\tGrace\n");
    prints(&folder, &["scan", "db", "--reverse", "--limit", "1"], "zebra\ta\\tb\\\\\n");
    prints(
        &folder,
        &["scan", "db", "--to", "user:1", "--json"],
        &(row("user:1", "\"Ada\"") + "\n"),
    );
    prints(&folder, &["scan", "db", "--from", "b", "--to", "a"], "");
    prints(&folder, &["count", "db"], "3\n");
    prints(&folder, &["count", "db", "--prefix", "user:"], "2\n");
}

#[test]
fn conditions_decide_whether_a_value_is_put() {
    let folder = users();
    let (status, _, stderr) = run(&folder, &["put", "db", "user:1", "x", "--if-absent"]);
    assert_eq!(status, 1);
    assert_eq!(
        stderr,
        "nuthatch: db: the condition does not hold for key \"user:1\": the key exists\n"
    );
    for (arguments, why) in [
        (&["user:9", "x", "--if-present"][..], "the key does not exist"),
        (&["user:1", "x", "--if-equals", "y"], "the key does not exist or has another value"),
    ] {
        let (status, _, stderr) = run(&folder, &[&["put", "db"], arguments].concat());
        assert!(status == 1 && stderr.ends_with(&format!(": {why}\n")), "{stderr}");
    }
    prints(&folder, &["put", "db", "user:3", "Alan", "--if-absent"], "");
    prints(&folder, &["put", "db", "user:3", "Kurt", "--if-equals", "Alan"], "");
    assert_eq!(run(&folder, &["put", "db", "user:9", "x", "--if-present"]).0, 1);
    prints(&folder, &["get", "db", "user:3"], "Kurt\n");
    let sessions = ["put", "db", "s", "token", "--table", "sessions", "--expires-in-ms"];
    prints(&folder, &[&sessions[..], &["3600000"]].concat(), "");
    prints(&folder, &["get", "db", "s", "--table", "sessions"], "token\n");
    prints(&folder, &[&sessions[..], &["0"]].concat(), "");
    assert_eq!(run(&folder, &["get", "db", "s", "--table", "sessions"]).0, 1);
}

#[test]
fn keys_and_ranges_are_deleted() {
    let folder = users();
    let (status, stdout, stderr) = run(&folder, &["del", "db", "zebra", "none"]);
    assert_eq!((status, &stdout[..], &stderr[..]), (1, "", "nuthatch: db: no key \"none\"\n"));
    prints(&folder, &["del", "db", "--prefix", "user:"], "2 keys\n");
    prints(&folder, &["count", "db"], "0\n");
    assert_eq!(run(&folder, &["del", "db"]).0, 2, "all keys are not deleted by mistake");
    assert_eq!(run(&folder, &["del", "db", "a", "--from", "b"]).0, 2);
}

#[test]
fn a_dump_is_loaded() {
    let folder = Folder::new();
    let rows: Vec<_> = (0..3000).map(|n| (format!("k{n:04}"), format!("\"v{n}\""))).collect();
    let rows: Vec<_> = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    folder.file("a.jsonl", lines(&rows));
    let (status, stdout, _) = run(&folder, &["load", "db", "a.jsonl", "--append"]);
    assert_eq!(status, 0);
    assert!(stdout.starts_with("db: 3,000 rows, "), "{stdout}");
    prints(&folder, &["dump", "db", "--quiet"], &lines(&rows));
    folder.file("b.jsonl", lines(&[("int", "7"), ("list", "[1,2]"), ("yes", "true")]));
    prints(&folder, &["load", "db", "b.jsonl", "--quiet", "--table", "typed"], "");
    prints(&folder, &["scan", "db", "--table", "typed"], "int\t7\nlist\t[1,2]\nyes\ttrue\n");
    let (status, _, stderr) = run(&folder, &["load", "db", "a.jsonl", "--append", "--quiet"]);
    assert_eq!(status, 3);
    assert!(stderr.contains("expected a key above all others, found \"k0000\""), "{stderr}");
    folder.file("c.jsonl", "{\"key\":\"a\"}\n");
    let (status, _, stderr) = run(&folder, &["load", "db", "c.jsonl", "--quiet"]);
    assert_eq!(status, 3);
    assert!(stderr.starts_with("nuthatch: c.jsonl:1:"), "{stderr}");
}

#[test]
fn stores_are_described_verified_copied_and_compacted() {
    let folder = users();
    let (_, text, _) = run(&folder, &["stat", "db"]);
    assert!(text.contains("table default: 3 entries"), "{text}");
    assert!(text.contains("\nreader slots  1 of 1022\n"), "{text}");
    let (_, text, _) = run(&folder, &["stat", "db", "--json"]);
    let stat: serde_json::Value = serde_json::from_str(&text).expect("a JSON object");
    assert_eq!(stat["tables"][1]["name"], "default");
    assert_eq!(stat["tables"][1]["entries"], 3);
    // The command has a slot of its own.
    assert_eq!((&stat["readers"], &stat["max_readers"]), (&1.into(), &1022.into()));
    let (status, stdout, _) = run(&folder, &["verify", "db"]);
    assert_eq!(status, 0);
    assert!(stdout.starts_with("db: valid: 3 entries in 2 tables"), "{stdout}");
    prints(&folder, &["backup", "db", "copy", "--compact", "--quiet"], "");
    prints(&folder, &["get", "copy", "user:1"], "Ada\n");
    assert_eq!(run(&folder, &["backup", "db", "copy"]).0, 3, "it is not overwritten");
    let (status, stdout, _) = run(&folder, &["compact", "db"]);
    assert_eq!(status, 0);
    assert!(stdout.ends_with(" now\n"), "{stdout}");
    prints(&folder, &["get", "db", "user:1"], "Ada\n");
    let mut bytes = folder.bytes("copy/data.mdb");
    let at = bytes.windows(6).position(|window| window == b"user:2").expect("the key");
    bytes[at] = b'a';
    folder.file("copy/data.mdb", bytes);
    let (status, _, stderr) = run(&folder, &["verify", "copy", "--quiet"]);
    assert_eq!(status, 3);
    assert!(stderr.starts_with("nuthatch: damaged store: "), "{stderr}");
}

#[test]
fn compact_of_a_store_with_lost_pages_says_how_to_regain_their_room() {
    let folder = users();
    let mut bytes = folder.bytes("db/data.mdb");
    // One more page in both meta pages, which is in no table and not free.
    for at in [0, 4096].map(|page| page + 136) {
        let last = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) + 1;
        bytes[at..at + 8].copy_from_slice(&last.to_le_bytes());
    }
    bytes.resize(bytes.len() + 4 * 4096, 0);
    folder.file("db/data.mdb", &bytes);
    for command in [&["compact", "db"][..], &["backup", "db", "copy", "--compact"]] {
        let (status, stdout, stderr) = run(&folder, command);
        assert_eq!((status, &stdout[..]), (3, ""), "{command:?}: {stderr}");
        for part in ["data.mdb: expected pages that are all", "\"nuthatch store load\""] {
            assert!(stderr.contains(part), "{command:?}: {stderr}");
        }
        assert!(!stderr.contains("MDB_"), "{command:?}: {stderr}");
    }
    assert_eq!(folder.bytes("db/data.mdb"), bytes, "the store is as it was");
    prints(&folder, &["backup", "db", "copy", "--quiet"], "");
    prints(&folder, &["get", "copy", "user:1"], "Ada\n");
}

#[test]
fn a_scan_of_a_file_that_is_truncated_meanwhile_says_so() {
    let folder = Folder::new();
    let row = |n| format!("{{\"key\":\"key{n:06}\",\"value\":\"{}\"}}\n", "v".repeat(500));
    folder.file("rows.jsonl", (0..8000).map(row).collect::<String>());
    assert_eq!(run(&folder, &["load", "db", "rows.jsonl", "--quiet"]).0, 0);
    for keep in [0, 40 * 4096] {
        let bytes = folder.bytes("db/data.mdb");
        let mut scan = folder
            .command(&["store", "scan", "db"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command to start");
        let mut printed = BufReader::new(scan.stdout.take().expect("its output"));
        let mut line = String::new();
        printed.read_line(&mut line).expect("a row");
        // The pipe is full: most rows are still to be read.
        let file = std::fs::File::options().write(true).open(folder.path("db/data.mdb"));
        file.and_then(|file| file.set_len(keep)).expect("a shorter file");
        for line in printed.lines() {
            assert!(line.is_ok(), "{line:?}");
        }
        let ended = scan.wait_with_output().expect("its end");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{stderr}");
        assert!(stderr.starts_with("nuthatch: damaged store: "), "{stderr}");
        assert!(stderr.contains("data.mdb: at byte "), "{stderr}");
        folder.file("db/data.mdb", bytes);
    }
}

#[test]
fn a_watch_prints_changes_as_they_are_committed() {
    let folder = users();
    let mut watch = folder
        .command(&["store", "watch", "db", "--keep", "100", "--oldest", "--limit", "3"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command to start");
    let mut printed = BufReader::new(watch.stdout.take().expect("its output")).lines();
    // Whether the store keeps changes already is seen from outside.
    while !run(&folder, &["stat", "db"]).1.contains("changes kept  from 1 on") {
        std::thread::yield_now();
    }
    prints(&folder, &["put", "db", "a", "1"], "");
    let line = printed.next().expect("a line").expect("text");
    let change: serde_json::Value = serde_json::from_str(&line).expect("a JSON object");
    assert_eq!(change["sequence"], 1);
    assert_eq!((&change["operation"], &change["key"]), (&"put".into(), &"a".into()));
    assert_eq!((&change["table"], &change["value"]), (&"default".into(), &"1".into()));
    prints(&folder, &["put", "db", "elsewhere", "1", "--table", "other"], "");
    prints(&folder, &["del", "db", "a"], "");
    let line = printed.next().expect("a line").expect("text");
    let end = "\"operation\":\"delete\",\"table\":\"default\",\"key\":\"a\"}";
    assert!(line.starts_with("{\"sequence\":3,") && line.ends_with(end), "{line}");
    prints(&folder, &["put", "db", "b", "2"], "");
    assert!(printed.next().is_some());
    assert!(watch.wait().expect("its end").success());
}

#[test]
fn missing_stores_tables_and_keys_are_reported() {
    let folder = users();
    let (status, _, stderr) = run(&folder, &["scan", "db", "--table", "none"]);
    assert_eq!(status, 3);
    let message = "nuthatch: db: expected a table \"none\", found default; --table chooses one, \
                --main the main one\n";
    assert_eq!(stderr, message);
    assert_eq!(run(&folder, &["get", "nowhere", "a"]).0, 3);
    assert_eq!(run(&folder, &["watch", "db"]).0, 3, "it keeps no changes");
    let (status, _, stderr) = run(&folder, &["get", "grpc://localhost:1", "a"]);
    assert_eq!(status, 3);
    assert!(stderr.contains("grpc://localhost:1: "), "{stderr}");
    let (status, _, stderr) = run(&folder, &["put", "db", "", "value"]);
    assert_eq!(status, 3);
    assert!(stderr.contains("key: expected 1 to 511 bytes, found 0"), "{stderr}");
}

/// Regression test: the help claimed that such a command had changed nothing.
#[test]
fn a_command_that_cannot_print_its_summary_says_what_it_has_done() {
    let folder = users();
    folder.file("rows.tsv", "a\t1\nb\t2\n").file("rows.jsonl", row("a", "1") + "\n");
    for (arguments, done) in [
        (&["store", "load", "db", "rows.tsv"][..], "the change was made: db: 2 rows, "),
        (&["store", "del", "db", "--prefix", "user:"], "the change was made: 2 keys"),
        (&["store", "backup", "db", "copy"], "the change was made: copy: copied, "),
        (&["store", "compact", "db"], "the change was made: db: "),
        (&["store", "verify", "db"], "the result is: db: valid: 3 entries"),
        (
            &["build", "rows.jsonl", "-o", "a.nut"],
            "the change was made: file      a.nut; entries   1; ",
        ),
        (&["verify", "a.nut"], "the result is: a.nut: valid: 1 entries"),
    ] {
        let (status, message) = folder.run_with_full_output(arguments);
        assert_eq!(status, Some(3), "{arguments:?}: {message}");
        let start = "nuthatch: <stdout>: write: No space left on device (os error 28); ";
        let summary = message.lines().last().and_then(|last| last.strip_prefix(start));
        assert!(summary.is_some_and(|summary| summary.starts_with(done)), "{message}");
    }
    prints(&folder, &["get", "copy", "a", "b"], "a\t1\nb\t2\n");
    prints(&folder, &["count", "copy"], "3\n");
    assert!(folder.path("a.nut").exists());
    for arguments in [
        &["get", "db", "a"][..],
        &["scan", "db"],
        &["count", "db"],
        &["dump", "db"],
        &["stat", "db"],
    ] {
        let (status, message) = folder.run_with_full_output(&[&["store"], arguments].concat());
        assert_eq!(status, Some(3), "{arguments:?}");
        assert!(
            message.contains("<stdout>: write: ") && !message.contains("was made"),
            "{message}"
        );
    }
    let put = folder.run_with_full_output(&["store", "put", "db", "c", "3"]);
    assert_eq!(put, (Some(0), String::new()), "it prints nothing");
}

#[test]
fn errors_about_keys_and_tables_name_the_store() {
    let folder = users();
    folder.file("rows.tsv", "a\t1\n");
    for (arguments, problem) in [
        (&["put", "db", "", "1"][..], "key: expected 1 to 511 bytes, found 0"),
        (&["put", "db", "a", "1", "--table", "nuthatch.x"], "table \"nuthatch.x\": expected"),
        (&["load", "db", "rows.tsv", "--append"], "expected a key above all others"),
        (&["watch", "db"], "the store keeps no changes"),
        (&["put", "db", "a", "1", "--stamped"], "table \"default\": expected"),
    ] {
        let (status, _, message) = run(&folder, arguments);
        assert_eq!(status, 3, "{arguments:?}: {message}");
        let start = format!("nuthatch: db: {problem}");
        assert!(message.starts_with(&start) || message.contains(problem), "{message}");
        assert!(message.starts_with("nuthatch: db: "), "{arguments:?}: {message}");
    }
}

#[test]
fn a_file_instead_of_a_store_is_reported() {
    let folder = Folder::new();
    folder.file("file", "no store").file("rows.tsv", "a\t1\n");
    for arguments in [&["put", "file", "a", "1"][..], &["load", "file", "rows.tsv"]] {
        let (status, _, message) = run(&folder, arguments);
        let expected = "file: expected the folder of a store, found a file; give another path: ";
        assert!(status == 3 && message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn the_folder_of_a_copy_is_created_but_not_its_parent() {
    let folder = users();
    let page = folder.run(&["store", "backup", "--help"]).stdout;
    assert!(page.contains("created if missing, but its parent must exist"), "{page}");
    let (status, _, message) = run(&folder, &["backup", "db", "missing/copy"]);
    let expected = "missing/copy: create the folder: No such file or directory";
    assert!(status == 3 && message.contains(expected), "{message}");
    assert!(!folder.path("missing").exists());
    prints(&folder, &["backup", "db", "copy", "--quiet"], "");
    prints(&folder, &["count", "copy"], "3\n");
}

#[test]
fn a_copy_into_the_store_itself_is_refused() {
    let folder = users();
    let (status, _, message) = run(&folder, &["backup", "db", "db"]);
    let expected =
        "db: back up: expected a folder without data.mdb for the copy, found that of the store";
    assert_eq!(status, 3);
    assert!(message.contains(expected), "{message}");
}

#[test]
fn the_newest_change_is_kept_however_long_it_is() {
    let folder = users();
    let kept = run(&folder, &["watch", "db", "--keep", "1", "--limit", "0"]);
    assert_eq!(kept, (0, String::new(), String::new()));
    let put = folder.run_with(&["store", "put", "db", "long", "-"], &vec![b'v'; 50_000]);
    assert_eq!(put.status, Some(0));
    let (status, changes, _) = run(&folder, &["watch", "db", "--oldest", "--limit", "1"]);
    assert_eq!((status, changes.lines().count()), (0, 1));
    assert!(changes.contains("\"key\":\"long\""), "{changes:.100}");
    let (status, _, message) = run(&folder, &["watch", "db", "--keep", "0"]);
    assert!(status == 2 && message.contains("--keep"), "{message}");
}

#[test]
fn a_path_without_a_store_is_reported_with_advice() {
    let folder = Folder::new();
    folder.file("file", "no store");
    for (path, found) in [("none", "found nothing;"), ("file", "found a file;")] {
        for arguments in [
            &["get", path, "a"][..],
            &["scan", path],
            &["count", path],
            &["stat", path],
            &["del", path, "a"],
            &["watch", path],
            &["compact", path],
            &["serve", path, "--listen", "127.0.0.1:0"],
        ] {
            let (status, stdout, stderr) = run(&folder, arguments);
            assert_eq!((status, &stdout[..]), (3, ""), "{arguments:?}: {stderr}");
            let parts = [found, "\"nuthatch store put\"", "\"nuthatch store load\""];
            let has_all = parts.iter().all(|part| stderr.contains(part));
            assert!(has_all && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
        }
    }
    let (status, _, stderr) = run(&folder, &["verify", "none"]);
    assert!(status == 3 && stderr.contains("found nothing;"), "{stderr}");
    assert!(!folder.path("none").exists());
}

#[test]
fn a_watch_of_a_store_that_keeps_no_changes_names_the_setting() {
    let folder = users();
    let (status, _, stderr) = run(&folder, &["watch", "db"]);
    assert_eq!(status, 3);
    for setting in ["--keep N", "--keep-changes N"] {
        assert!(stderr.contains(setting) && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn get_prints_the_version_for_a_condition() {
    let folder = Folder::new();
    let session = ["put", "db", "s", "one", "--table", "sessions", "--expires-in-ms", "3600000"];
    prints(&folder, &session, "");
    let (_, shown, _) = run(&folder, &["get", "db", "s", "--table", "sessions", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("a JSON object");
    assert!(shown["expires_at_ms"].as_u64().is_some(), "{shown}");
    let version = shown["version"].as_u64().expect("a version").to_string();
    let put = ["put", "db", "s", "two", "--table", "sessions", "--if-version", &version];
    prints(&folder, &put, "");
    assert_eq!(run(&folder, &put).0, 1, "it has another version by now");
}

#[test]
fn a_command_that_waits_for_a_compaction_says_so() {
    let folder = users();
    let lock = std::fs::File::options().read(true).write(true).open(folder.path("db/lock.mdb"));
    let lock = lock.expect("the lock");
    // As compaction locks it.
    rustix::fs::fcntl_lock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    let mut command = folder.command(&["store", "get", "db", "user:1"]);
    let mut waiting =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
    let mut said = String::new();
    let stderr = waiting.stderr.take().expect("its errors");
    BufReader::new(stderr).read_line(&mut said).expect("a line");
    let expected = "warning: db: waiting to open the store: another process may be compacting it";
    assert_eq!(said, format!("nuthatch: {expected}\n"));
    drop(lock);
    let output = waiting.wait_with_output().expect("its end");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"Ada\n"[..]));
}

#[test]
fn a_damaged_store_is_an_error_for_every_command() {
    let folder = Folder::new();
    let rows: Vec<_> = (0..400).map(|n| format!("key{n:04}\tvalue of {n}\n")).collect();
    let rows = rows.concat();
    let load = folder.run_with(&["store", "load", "db", "-", "--format", "tsv"], rows.as_bytes());
    assert_eq!(load.status, Some(0), "{}", load.stderr);
    let path = folder.path("db/data.mdb");
    let mut bytes = std::fs::read(&path).expect("the file");
    // Where two entries of the leaf with this row are: the first ones after its header.
    let row = bytes.windows(9).rposition(|at| at == b"value of ").expect("a row");
    let leaf = row / 4096 * 4096;
    bytes[leaf + 16..leaf + 20].copy_from_slice(&[0xF0; 4]);
    std::fs::write(&path, &bytes).expect("the file");
    let commands: [&[&str]; 10] = [
        &["scan", "db"],
        &["scan", "db", "--reverse"],
        &["scan", "db", "--keys-only"],
        &["scan", "db", "--from", "key"],
        &["dump", "db"],
        &["count", "db", "--prefix", "key"],
        &["verify", "db"],
        &["backup", "db", "copy"],
        &["backup", "db", "copy", "--compact"],
        &["compact", "db"],
    ];
    for command in commands {
        let (status, _, stderr) = run(&folder, command);
        assert_eq!(status, 3, "{command:?}: {stderr}");
        assert!(stderr.contains("damaged store: "), "{command:?}: {stderr}");
        assert!(stderr.contains("data.mdb: at byte "), "{command:?}: {stderr}");
    }
    assert!(!folder.path("copy/data.mdb").exists(), "a damaged store is not copied");
    assert_eq!(std::fs::read(&path).expect("the file"), bytes, "compact leaves it as it was");
    // No key is called missing.
    let statuses: Vec<_> = (0..400)
        .step_by(9)
        .chain([398, 399])
        .map(|n| {
            let (status, stdout, stderr) = run(&folder, &["get", "db", &format!("key{n:04}")]);
            let is_right = stdout == format!("value of {n}\n");
            assert!(status == 0 && is_right || status == 3, "{n}: {status}, {stdout}{stderr}");
            status
        })
        .collect();
    assert!(statuses.contains(&3), "a key is in the damaged leaf");
}

#[test]
fn an_empty_file_is_a_damaged_store_for_every_command() {
    let folder = users();
    std::fs::write(folder.path("db/data.mdb"), b"").expect("the file");
    for command in [
        &["verify", "db"][..],
        &["get", "db", "user:1"],
        &["scan", "db"],
        &["put", "db", "user:1", "Ada"],
        &["compact", "db"],
        &["backup", "db", "copy"],
        &["stat", "db"],
    ] {
        let (status, _, stderr) = run(&folder, command);
        assert_eq!(status, 3, "{command:?}: {stderr}");
        let message = "expected two meta pages, found an empty file";
        assert!(stderr.contains(message), "{command:?}: {stderr}");
    }
    let len = folder.path("db/data.mdb").metadata().expect("the file").len();
    assert_eq!(len, 0, "nothing began anew");
}
