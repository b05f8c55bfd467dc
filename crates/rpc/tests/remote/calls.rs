//! Unary calls.

use super::served::{TABLE, address, code, is, options, served, served_with};
use bytes::Bytes;
use nuthatch_rpc::{Batch, Client, ClientOptions, Server};
use nuthatch_store::{Condition, Kind, Options as StoreOptions, Range, Read, Store};

#[test]
fn missing_and_empty_values_differ() {
    let served = served();
    let client = served.client.clone();
    served.run(async move {
        client.put(TABLE, b"empty", b"").await.expect("written");
        client.put(TABLE, b"wren", b"small").await.expect("written");
        assert_eq!(client.get(TABLE, b"empty").await.expect("read"), Some(Bytes::new()));
        assert_eq!(client.get(TABLE, b"missing").await.expect("read"), None);
        assert_eq!(client.get(TABLE, b"").await.expect("read"), None);
        let many = client.get_many(TABLE, &["wren", "missing", "empty"]).await.expect("read");
        assert_eq!(many, [Some(Bytes::from("small")), None, Some(Bytes::new())]);
    });
}

#[test]
fn an_acknowledged_write_is_committed() {
    let served = served();
    let written = served.wait(served.client.put(TABLE, b"wren", b"1")).expect("written");
    let txn = served.store.read().expect("a transaction");
    assert_eq!(txn.get(&served.table, b"wren").expect("read"), Some(&b"1"[..]));
    assert_eq!(written.transaction, txn.id());
    assert_eq!(written.sequence, txn.sequence().expect("a number"));
    drop(txn);
    assert!(served.wait(served.client.delete(TABLE, b"wren")).expect("deleted"));
    assert!(!served.wait(served.client.delete(TABLE, b"wren")).expect("deleted"));
}

#[test]
fn a_put_happens_if_its_condition_holds() {
    let served = served();
    let client = served.client.clone();
    served.run(async move {
        let put = |value: &'static str, condition: Condition<'static>| {
            let client = client.clone();
            async move {
                let put = client.put_if(TABLE, b"lock", value.as_bytes(), condition).await;
                put.expect("an answer").is_some()
            }
        };
        assert!(!put("x", Condition::Present).await);
        assert!(put("a", Condition::Absent).await);
        assert!(!put("b", Condition::Absent).await);
        assert!(!put("b", Condition::Equals(b"")).await);
        assert!(put("b", Condition::Equals(b"a")).await);
        assert!(put("c", Condition::Present).await);
        assert_eq!(client.get(TABLE, b"lock").await.expect("read"), Some(Bytes::from("c")));
    });
}

#[test]
fn stamped_tables_have_versions_and_times() {
    let served = served();
    let client = served.client.clone();
    served.run(async move {
        let kind = client.create_table("stamped", Some(Kind::Stamped)).await;
        assert_eq!(kind.expect("made"), Kind::Stamped);
        let kind = client.create_table("stamped", None).await.expect("there");
        assert_eq!(kind, Kind::Stamped);
        let far = 1 << 50;
        client.put_until("stamped", b"a", b"1", far).await.expect("written");
        let found = client.entry("stamped", b"a").await.expect("read").expect("there");
        assert_eq!((found.expires_at_ms, &found.value[..]), (Some(far), &b"1"[..]));
        let version = found.version.expect("a version");
        let wrong = Condition::Version(version + 1);
        assert!(client.put_if("stamped", b"a", b"2", wrong).await.expect("read").is_none());
        let right = Condition::Version(version);
        assert!(client.put_if("stamped", b"a", b"2", right).await.expect("read").is_some());
        let found = client.entry("stamped", b"a").await.expect("read").expect("there");
        assert!(found.version > Some(version) && found.expires_at_ms.is_none(), "{found:?}");
        // A time in the past: the row counts as expired at once.
        client.put_until("stamped", b"gone", b"1", 1).await.expect("written");
        assert_eq!(client.get("stamped", b"gone").await.expect("read"), None);
        assert_eq!(client.entry(TABLE, b"a").await.expect("read"), None);
    });
}

#[test]
fn ranges_are_counted_and_deleted() {
    let served = served();
    served.fill(100, 1);
    let client = served.client.clone();
    served.run(async move {
        let tens = Range::prefix("0000001");
        assert_eq!(client.count(TABLE, &tens).await.expect("read"), 10);
        assert_eq!(client.count(TABLE, &Range::all()).await.expect("read"), 100);
        assert_eq!(client.delete_range(TABLE, &tens).await.expect("deleted"), 10);
        let rest = Range::all().after("00000050");
        assert_eq!(client.delete_range(TABLE, &rest).await.expect("deleted"), 49);
        assert_eq!(client.count(TABLE, &Range::all()).await.expect("read"), 41);
        assert_eq!(client.delete_range(TABLE, &Range::all()).await.expect("deleted"), 41);
    });
}

#[test]
fn statistics_cover_the_store_and_its_tables() {
    let served = served();
    served.fill(7, 1);
    served.wait(served.client.create_table("a", Some(Kind::Stamped))).expect("a table");
    let stat = served.wait(served.client.stat()).expect("an answer");
    let names: Vec<_> = stat.tables.iter().map(|table| (&table.name[..], table.kind)).collect();
    assert_eq!(names, [("", Kind::Plain), ("a", Kind::Stamped), (TABLE, Kind::Plain)]);
    assert_eq!(stat.tables[2].stat, served.store.table_stat(&served.table).expect("a table"));
    let local = served.store.stat().expect("an answer");
    assert_eq!(
        (stat.store.transaction, stat.store.used_bytes),
        (local.transaction, local.used_bytes)
    );
    assert_eq!(stat.oldest_change, None);
    let tables = served.wait(served.client.tables()).expect("an answer");
    let expected = [("a".to_owned(), Kind::Stamped), (TABLE.to_owned(), Kind::Plain)];
    assert_eq!(tables, expected);
}

#[test]
fn invalid_requests_have_codes() {
    let served = served();
    let client = served.client.clone();
    served.run(async move {
        assert_eq!(code(client.get("none", b"a").await), is("no-table", 5));
        assert_eq!(code(client.put("none", b"a", b"").await), is("no-table", 5));
        assert_eq!(code(client.put(TABLE, b"", b"").await), is("length", 3));
        assert_eq!(code(client.put(TABLE, &[0; 512], b"").await), is("length", 3));
        assert_eq!(code(client.put_until(TABLE, b"a", b"", 1).await), is("table", 9));
        let stamped = client.create_table(TABLE, Some(Kind::Stamped)).await;
        assert_eq!(code(stamped), is("table", 9));
        assert_eq!(code(client.create_table("", None).await), is("length", 3));
        assert_eq!(code(client.create_table("nuthatch.x", None).await), is("table", 9));
        let version = client.put_if(TABLE, b"a", b"", Condition::Version(1)).await;
        assert_eq!(code(version), is("table", 9));
        let batch = Batch::new().put(TABLE, b"a", b"1").check(TABLE, b"a", Condition::Absent);
        let error = client.write_batch(batch).await.expect_err("a condition");
        assert_eq!((error.code(), error.write()), ("condition-unmet", Some(1)));
        assert_eq!(client.get(TABLE, b"a").await.expect("read"), None);
    });
}

#[test]
fn messages_that_are_too_long_are_refused_both_ways() {
    let served = served_with(&options().message_bytes(64 << 10));
    served.fill(3, 40 << 10);
    served.store.put(&served.table, b"long", &vec![0; 70 << 10]).expect("written");
    let client = served.client.clone();
    served.run(async move {
        assert_eq!(code(client.put(TABLE, b"a", &vec![0; 65 << 10]).await), is("too-long", 11));
        assert_eq!(code(client.get(TABLE, b"long").await), is("too-long", 11));
        let keys = ["00000000", "00000001"];
        assert_eq!(code(client.get_many(TABLE, &keys).await), is("too-long", 11));
        assert_eq!(client.get_many(TABLE, &keys[1..]).await.expect("read").len(), 1);
    });
}

#[test]
fn requests_beyond_the_memory_limit_are_refused_and_all_memory_is_freed() {
    let served = served_with(&options().memory(1 << 20));
    served.store.put(&served.table, b"long", &vec![0; 2 << 20]).expect("written");
    served.store.put(&served.table, b"full", &vec![0; 1 << 20]).expect("written");
    let client = served.client.clone();
    served.run(async move {
        assert_eq!(code(client.get(TABLE, b"long").await), is("too-long", 11));
        let put = client.put(TABLE, b"a", &vec![0; 2 << 20]).await;
        assert_eq!(code(put), is("too-long", 11), "no message is longer than the memory");
        assert_eq!(code(client.get(TABLE, b"full").await), is("memory", 8));
        client.put(TABLE, b"a", &vec![0; 300 << 10]).await.expect("there is room");
        assert!(client.get(TABLE, b"a").await.expect("there is room").is_some());
    });
    served.until(|served| {
        served.server.metrics().held_bytes() == 0 && served.server.metrics().open_calls() == 0
    });
}

#[test]
fn a_read_only_store_is_served_and_refuses_writes() {
    let served = served();
    served.fill(1, 1);
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy");
    served.store.backup(&copy, false).expect("a copy");
    let store = Store::open(&copy, &StoreOptions::new().read_only(true)).expect("a store");
    let second = Server::start(store, &options()).expect("a server");
    let client = served.wait(Client::connect(&address(&second)));
    let client = client.expect("a client");
    assert_eq!(served.wait(client.count(TABLE, &Range::all())).expect("read"), 1);
    assert_eq!(code(served.wait(client.put(TABLE, b"a", b""))), is("read-only", 9));
}

#[test]
fn a_backup_is_a_store() {
    let served = served();
    served.fill(5000, 100);
    let folder = tempfile::tempdir().expect("a folder");
    for compact in [false, true] {
        let mut bytes = Vec::new();
        served.wait(async {
            let mut backup = served.client.backup(compact).await.expect("a stream");
            while let Some(part) = backup.next().await {
                bytes.extend_from_slice(&part.expect("bytes"));
            }
        });
        let copy = folder.path().join(format!("{compact}"));
        std::fs::create_dir(&copy).expect("a folder");
        std::fs::write(copy.join("data.mdb"), &bytes).expect("a file");
        let store = Store::open(&copy, &StoreOptions::new().create(false)).expect("a store");
        store.verify(|_, _| {}).expect("a whole store");
        let table = store.find_table(TABLE).expect("read").expect("a table");
        let count = store.read().expect("read").count(&table, &Range::all()).expect("read");
        assert_eq!(count, 5000);
    }
}

#[test]
fn an_unreachable_server_is_reported_after_all_retries() {
    let served = served();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("grpc://{}", gone.local_addr().expect("an address"));
    drop(gone);
    let options = ClientOptions::new().retries(1);
    let error = served.wait(Client::connect_with(&address, &options)).expect_err("nobody");
    assert_eq!((error.code(), error.status()), ("transport", 14));
    assert!(error.is_transient() && error.message().starts_with(&address), "{error}");
}
