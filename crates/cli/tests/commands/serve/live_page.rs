//! The settings of the live page, and what `nuthatch top` shows of its report.

use crate::folder::Folder;
use crate::server::{Running, wait_until};
use rustix::process::Signal;

const TOKEN: &str = "a-token-of-32-characters-for-this";
const OTHER_TOKEN: &str = "another-token-that-replaces-the-1st";

/// Returns what `nuthatch top` prints with the token of this file.
fn top(folder: &Folder, server: &Running, token_file: &str) -> (Option<i32>, String) {
    let arguments = ["top", &server.admin, "--json", "--token-file", token_file];
    let run = folder.run(&arguments[..if token_file.is_empty() { 3 } else { 5 }]);
    (run.status, run.stdout + &run.stderr)
}

#[test]
fn top_shows_keys_and_clients_with_the_token_only() {
    let folder = Folder::new();
    folder.file("token", format!("{TOKEN}\n")).mode("token", 0o600);
    folder.file("wrong", OTHER_TOKEN).mode("wrong", 0o600);
    let server = folder.serve(
        &["--admin=127.0.0.1:0", "--admin-token-file=token", "--slow-log-threshold=0s"],
        &[],
    );
    for _ in 0..10 {
        server.ask("GET secret:1");
    }
    server.ask("SET secret:2 v");
    let (status, hidden) = top(&folder, &server, "");
    assert_eq!(status, Some(0), "{hidden}");
    assert!(hidden.contains("\"hot_keys\"") && !hidden.contains("secret"), "{hidden}");
    let value: serde_json::Value = serde_json::from_str(&hidden).expect("JSON");
    assert_eq!(value["tables"]["hot_keys"]["rows"][0]["key"]["bytes"], 8);
    let slow = value["tables"]["slow"]["rows"].as_array().expect("rows");
    assert!(slow.iter().any(|row| row["command"] == "set"), "{hidden}");
    let (status, shown) = top(&folder, &server, "token");
    assert_eq!(status, Some(0), "{shown}");
    for expected in ["\"secret:1\"", "\"secret:2\"", "\"secret:2 v\""] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let (status, wrong) = top(&folder, &server, "wrong");
    assert!(status == Some(3) && wrong.contains("wrong token: expected the one of"), "{wrong}");
    let once = folder.run(&["top", &server.admin, "--once", "--token-file", "token"]);
    let titles = ["hot keys (", "big keys (", "slow commands (", "clients ("];
    assert!(titles.iter().all(|title| once.stdout.contains(title)), "{once:?}");
    assert!(once.stdout.lines().all(|line| line.chars().count() <= 110), "{once:?}");
}

#[test]
fn requests_without_permission_are_no_hot_keys() {
    let folder = Folder::new();
    folder.file("users", "user default off\nuser ann on >sesame ~open:* +@all\n");
    let log_in = "AUTH ann sesame\r\nGET";
    let server = folder.serve(&["--admin=127.0.0.1:0", "--users=users"], &[]);
    for _ in 0..10 {
        server.ask("GET guess:1");
        server.ask(&format!("{log_in} hidden:1"));
        server.ask(&format!("{log_in} open:1"));
    }
    let (status, shown) = top(&folder, &server, "");
    assert_eq!(status, Some(0), "{shown}");
    let value: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let rows = value["tables"]["hot_keys"]["rows"].as_array().expect("rows");
    let lens: Vec<_> = rows.iter().map(|row| &row["key"]["bytes"]).collect();
    assert_eq!(lens, [6], "open:1 alone: {shown}");
}

#[test]
fn a_reload_replaces_the_token_and_a_bad_one_changes_nothing() {
    let folder = Folder::new();
    folder.file("token", TOKEN).mode("token", 0o600);
    let server =
        folder.serve(&["--admin=127.0.0.1:0", "--admin-token-file=token", "--log=info"], &[]);
    folder.file("first", TOKEN).file("second", OTHER_TOKEN).file("token", "short");
    server.signal(Signal::HUP);
    wait_until("a failed reload", || server.messages().contains("at least 16 visible ASCII"));
    assert_eq!(top(&folder, &server, "first").0, Some(0));
    folder.file("token", OTHER_TOKEN);
    server.signal(Signal::HUP);
    wait_until("a reload", || server.messages().contains("nuthatch::server: reloaded"));
    assert_eq!(top(&folder, &server, "first").0, Some(3));
    assert_eq!(top(&folder, &server, "second").0, Some(0));
}

#[test]
fn names_and_tokens_that_cannot_be_used_are_named() {
    let folder = Folder::new();
    let expected = "expected a name without http:// and without a port, such as \
                    cache-7.example.com, found \"cache:9464\"";
    folder.fails(&["--admin-host=cache:9464"], 2, &format!("--admin-host: {expected}"));
    folder.file("token", "short").mode("token", 0o600);
    let expected = "token: expected a token of at least 16 visible ASCII characters, found 5 \
                    bytes; `openssl rand -hex 32` makes one";
    folder.fails(&["--admin-token-file=token"], 3, expected);
    let follow = ["follow", "source", "folder", "--admin=127.0.0.1:0", "--admin-host=a/b"];
    assert_eq!(folder.run(&follow).status, Some(2));
}
