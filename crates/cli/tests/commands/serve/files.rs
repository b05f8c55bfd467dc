//! Errors in settings files and their messages.

use crate::folder::Folder;

/// A file, and the message about it.
const WRONG: &[(&str, &str)] = &[
    (
        "memroy = '1GiB'",
        "1:1: expected the name of a setting, found `memroy`; did you mean `memory`?",
    ),
    ("\n xyz = 1", "2:2: expected the name of a setting, found `xyz`"),
    (
        "[tls]\ncrt = 'a'",
        "2:1: expected the name of a setting, found `tls-crt`; did you mean `tls-cert`?",
    ),
    ("[memory]\n", "1:1: memory: expected a size such as 512M, 2GiB or 64MB, found a table"),
    ("tls = 'a'", "1:1: tls: expected a table, found a string; did you mean `tls-key`?"),
    (
        "[[resp]]\n",
        "1:1: resp: expected addresses such as [\"127.0.0.1:6379\", \
      \"unix:/run/nuthatch.sock\"], or off, found a list of tables",
    ),
    ("memory = true", "1:10: memory: expected a size such as 512M, 2GiB or 64MB, found true"),
    (
        "memory = '5X'",
        "1:10: memory: expected a size such as 512M, 2GiB or 64MB, found the string `5X`",
    ),
    (
        "memory = -1",
        "1:10: memory: expected a size such as 512M, 2GiB or 64MB, found the integer -1",
    ),
    (
        "max-clients = 0",
        "1:15: max-clients: expected a number from 1 to 4294967295, found the integer 0",
    ),
    (
        "max-clients = '5'",
        "1:15: max-clients: expected a number from 1 to 4294967295, found the string `5`",
    ),
    (
        "max-clients = 1.5",
        "1:15: max-clients: expected a number from 1 to 4294967295, found a float",
    ),
    (
        "threads = 'all'",
        "1:11: threads: expected auto, or a number from 1 to 1000, found the string `all`",
    ),
    (
        "timeout = 30",
        "1:11: timeout: expected whole seconds such as 30s, or off, found the integer 30",
    ),
    (
        "timeout = '1500ms'",
        "1:11: timeout: expected whole seconds such as 30s, or off, \
         found the string `1500ms`",
    ),
    (
        "slow-log-threshold = '10'",
        "1:22: slow-log-threshold: expected whole microseconds such as 10ms, or off, \
         found the string `10`",
    ),
    ("eviction = 'lru'", "1:12: eviction: expected s3fifo or none, found the string `lru`"),
    ("insecure = 'yes'", "1:12: insecure: expected true or false, found the string `yes`"),
    ("insecure = 1", "1:12: insecure: expected true or false, found the integer 1"),
    ("users = ''", "1:9: users: expected a path, found the string ``"),
    ("password = ''", "1:12: password: expected a text in quotes, found nothing"),
    ("password = 12345", "1:12: password: expected a text in quotes, found something else"),
    ("resp = [1]", "1:9: expected a string in this list, found an integer"),
    (
        "resp = ['off', '127.0.0.1:1']",
        "1:8: resp: expected off alone, or addresses, found off with others",
    ),
    (
        "resp = 'tls:unix:a'",
        "1:8: resp: expected host:port behind `tls:`, found a socket in the file system",
    ),
    ("max-clients = 1\nmax_clients = 2", "2:1: expected max-clients once, found it again"),
    ("tls-cert = 'a'\n[tls]\ncert = 'b'", "3:1: expected tls-cert once, found it again"),
];

#[test]
fn wrong_files_are_refused_with_the_place_and_what_was_expected() {
    let folder = Folder::new();
    for (text, message) in WRONG {
        folder.file("a.toml", text);
        folder.fails(&["--config", "a.toml", "--show-config"], 3, &format!("a.toml:{message}"));
    }
}

#[test]
fn invalid_toml_is_reported_with_its_position() {
    let folder = Folder::new();
    for (text, place) in [
        ("memory = \n", "a.toml:1:"),
        ("\n= 1", "a.toml:2:1:"),
        ("memory", "a.toml:1:"),
        ("memory = 1\nmemory = 2", "a.toml:2:1:"),
        ("memory = '1", "a.toml:1:"),
        (&"[".repeat(100_000), "a.toml:1:"),
        ("a=[", "a.toml:1:"),
        (&format!("a={}", "[".repeat(100_000)), "a.toml:1:"),
        (&format!("{}a=1", "a.".repeat(100_000)), "a.toml:1:"),
    ] {
        folder.file("a.toml", text);
        let run = folder.run_serve(&["--config", "a.toml"], &[]);
        let shown = &text[..text.len().min(20)];
        assert!(run.stderr.starts_with(&format!("nuthatch: {place}")), "{shown}: {}", run.stderr);
        assert_eq!(
            (run.status, run.stderr.lines().count()),
            (Some(3), 1),
            "{shown}: {}",
            run.stderr
        );
    }
}

#[test]
fn files_that_cannot_be_read_are_reported() {
    let folder = Folder::new();
    let absent = "nowhere.toml: expected a file, but there is no such file; check the path";
    folder.fails(&["--config", "nowhere.toml"], 3, absent);
    folder.fails_with(&[], &[("NUTHATCH_CONFIG", "nowhere.toml")], 3, absent);
    folder.fails(
        &["--config", "."],
        3,
        ".: expected a file, but it is a folder; name a file in it",
    );
    std::fs::write(folder.path("bytes.toml"), b"a\xff").expect("a file of the test");
    let message = "bytes.toml: expected UTF-8, found something else at byte 1";
    folder.fails(&["--config", "bytes.toml"], 3, message);
    folder.file("long.toml", "\n".repeat((1 << 20) + 1));
    let message = "long.toml: expected a file of at most 1048576 bytes, found more";
    folder.fails(&["--config", "long.toml"], 3, message);
    folder.fails(&["--config", "/dev/zero"], 3, &message.replace("long.toml", "/dev/zero"));
}
