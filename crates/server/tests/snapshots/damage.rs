//! Tests files that are changed in place while they are served.

use crate::harness::{Reply, Setup, Site, build, file};
use crate::served::ask;
use nuthatch_snapshot::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;

const KEYS: usize = 4000;

fn texts(folder: &std::path::Path) {
    let entries = (0..KEYS).map(|key| (format!("{key}"), Value::String("a value in its place")));
    build(&file(folder, "users"), entries);
}

/// Sets the type codes and lengths of most records to bytes that no record has.
#[test]
fn damage_is_an_error_of_its_key_and_is_counted() {
    let site = Site::start(&Setup::default(), texts);
    let mut client = site.resp();
    let path = site.path("users");
    let len = std::fs::metadata(&path).expect("a file").len();
    let file = File::options().write(true).open(path).expect("a file");
    // The data section is the last and longest one.
    let (start, ones) = (len / 2, [0xff; 4096]);
    for at in (start..len - 4096).step_by(4096) {
        file.write_all_at(&ones, at).expect("written");
    }
    let (mut values, mut errors, mut others) = (0, 0, 0);
    for key in 0..KEYS {
        match client.ask(&format!("GET users:{key}")) {
            Reply::Text(text) if text == "a value in its place" => values += 1,
            Reply::Text(text) if text.starts_with("-ERR the file of snapshot users") => errors += 1,
            // Damage can hide the key.
            Reply::Null => others += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(values > 0 && errors > 0, "{values} {errors} {others}");
    assert_eq!(client.report("users", "read_errors"), errors.to_string());
    // Neither a scan nor another protocol ends the server.
    let mut cursor = "0".to_owned();
    loop {
        let reply = client.ask(&format!("SCAN {cursor} COUNT 500")).list();
        cursor = reply[0].clone().text();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(client.ask("PING").text(), "PONG");
    assert_eq!(client.ask("MGET users:1 users:2 users:3").list_or_error(), 3);
}

#[test]
fn a_file_that_is_truncated_is_an_error_and_a_new_one_replaces_it() {
    let site = Site::start(&Setup::default(), texts);
    let mut client = site.resp();
    let path = site.path("users");
    File::options().write(true).open(&path).expect("a file").set_len(0).expect("truncated");
    let damaged = "-ERR the file of snapshot users is damaged at this key";
    assert_eq!(client.ask("GET users:1").text(), damaged);
    assert_eq!(client.ask("EXISTS users:nothing").text(), damaged);
    let mut stream = site.connect(1);
    let error = b"SERVER_ERROR the file of the snapshot is damaged at this key\r\n";
    ask(&mut stream, b"get users:1\r\n", error);
    ask(&mut stream, b"mg users:1 v\r\n", error);
    ask(
        &mut site.connect(2),
        b"GET users:1\x1f",
        b"ERROR: the file of snapshot users is damaged at this key\x1f",
    );
    ask(&mut site.connect(3), b"\x00\x01\x07\x00users:1", b"\x00\x00\x00\x00");
    texts(site.folder.path());
    client.wait_for("users", "switches", |now| now == "1");
    assert_eq!(client.ask("GET users:1").text(), "a value in its place");
}

impl Reply {
    /// Returns the number of values of a list, or 3 for an error.
    fn list_or_error(self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Text(error) if error.starts_with("-ERR") => 3,
            other => panic!("{other:?}"),
        }
    }
}
