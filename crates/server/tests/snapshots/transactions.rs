//! Tests transactions and permissions with keys of snapshots.

use crate::harness::{Reply, Setup, Site, build, build_all_types, file};
use crate::served::ask;
use nuthatch_snapshot::Value;

#[test]
fn transactions_read_snapshots_and_refuse_writes_when_they_are_queued() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    client.ask("MULTI");
    for request in ["GET users:name", "SET a 1", "LRANGE users:ids 0 0"] {
        assert_eq!(client.ask(request).text(), "QUEUED");
    }
    let text = |text: &str| Reply::Text(text.to_owned());
    let expected = [text("Ada"), text("OK"), Reply::List(vec![text("1")])];
    assert_eq!(client.ask("EXEC").list(), expected);

    client.ask("MULTI");
    client.ask("SET a 2");
    let refused = client.ask("SET users:name x").text();
    assert!(refused.starts_with("-ERR READONLY"), "{refused}");
    let aborted = "-EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(client.ask("EXEC").text(), aborted);
    assert_eq!(client.ask("GET a").text(), "1");
}

#[test]
fn a_watched_key_of_a_snapshot_changes_only_with_its_value() {
    let users = |path: &std::path::Path, age: i64| {
        let entries = [("name", Value::String("Ada")), ("age", Value::I64(age))];
        build(path, entries.map(|(key, value)| (key.to_owned(), value)));
    };
    let site = Site::start(&Setup::default(), |folder| users(&file(folder, "users"), 36));
    let (mut client, mut other) = (site.resp(), site.resp());
    let mut exec = |watched: &str, age: Option<i64>| {
        assert_eq!(client.ask(&format!("WATCH {watched}")).text(), "OK");
        if let Some(age) = age {
            let switches = other.report("users", "switches");
            users(&site.path("users"), age);
            other.wait_for("users", "switches", |now| now != switches);
        }
        client.ask("MULTI");
        client.ask("GET users:name");
        client.ask("EXEC")
    };
    let executed = Reply::List(vec![Reply::Text("Ada".to_owned())]);
    assert_eq!(exec("users:age users:nothing", None), executed);
    assert_eq!(exec("users:name users:nothing", Some(37)), executed, "another value changed");
    assert_eq!(exec("users:name users:age", Some(38)), Reply::Null);
}

#[test]
fn users_read_the_keys_of_snapshots_that_their_patterns_match() {
    let setup = Setup {
        users: "user default off\nuser ann on nopass ~users:na* +@all -del",
        ..Setup::default()
    };
    let site = Site::start(&setup, |folder| build_all_types(&file(folder, "users")));
    let mut client = site.resp();
    assert!(client.ask("GET users:name").text().starts_with("-NOAUTH"));
    assert_eq!(client.ask("AUTH ann x").text(), "OK");
    assert_eq!(client.ask("GET users:name").text(), "Ada");
    for request in ["GET users:age", "MGET users:name users:age", "SET users:age 1"] {
        let denied = client.ask(request).text();
        assert!(denied.starts_with("-NOPERM"), "{request}: {denied}");
    }
    assert!(client.ask("DEL users:name").text().starts_with("-NOPERM"));
    assert!(client.ask("SET users:name x").text().starts_with("-ERR READONLY"));
    let mut stream = site.connect(1);
    ask(&mut stream, b"get users:name\r\n", b"CLIENT_ERROR unauthenticated\r\n");
    ask(&mut stream, b"set x 0 0 5\r\nann x\r\n", b"STORED\r\n");
    ask(
        &mut stream,
        b"get users:age\r\nget users:name\r\n",
        b"CLIENT_ERROR this user has no permissions to access this key\r\n\
          VALUE users:name 0 3\r\nAda\r\nEND\r\n",
    );
}
