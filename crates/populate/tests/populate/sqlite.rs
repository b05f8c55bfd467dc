//! Jobs that read SQLite.

use crate::place::{Place, Run};

const TYPES: &str = "
    create table t(id integer primary key, i integer, r real, x text, b blob, j text);
    insert into t values (1, -7, 0.5, 'é', x'00ff', '{\"a\": [1, 2], \"b\": {\"c\": null}}');
    insert into t values (2, null, null, null, null, null);
";

#[test]
fn each_type_is_stored_as_documented() {
    let place = Place::new();
    place.sqlite(TYPES);
    let run = place.run(&[
        "--source=sqlite:a.db",
        "--query=select * from t",
        "--key=t:{id}.{column}",
        "--column=j:flatten",
        "-o=a.nut",
    ]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stdout.starts_with("a.nut: 5 entries, "), "{}", run.stdout);
    assert_eq!(
        place.entries("a.nut"),
        [
            "t:1.b=Bytes([0, 255])",
            "t:1.i=I64(-7)",
            "t:1.j.a=I64List([1, 2])",
            "t:1.r=F64(0.5)",
            "t:1.x=String(\"é\")",
        ]
    );
    assert_eq!(place.names(), ["a.db", "a.nut"]);
}

#[test]
fn columns_are_converted_to_named_types() {
    let place = Place::new();
    place.sqlite(TYPES);
    let run = place.job(
        r#"
        output = "a.nut"
        [[source]]
        from = "sqlite:a.db"
        query = """
            select id, i, r * 8 as r, '[1, 2.5]' as v, 1 as t, x, '["p"]' as s
            from t where id = 1; """
        key = "{id}.{column}"
        types = { i = "f64", r = "i64", v = "f32[]", t = "bool", x = "bytes", s = "string[]" }
        "#,
    );
    assert_eq!(run.report()["entries"], 6);
    assert_eq!(
        place.entries("a.nut"),
        [
            "1.i=F64(-7.0)",
            "1.r=I64(4)",
            "1.s=StringList([\"p\"])",
            "1.t=Bool(true)",
            "1.v=F32List([1.0, 2.5])",
            "1.x=Bytes([195, 169])",
        ]
    );
}

#[test]
fn null_is_absent_or_empty_or_an_error() {
    let place = Place::new();
    place.sqlite(TYPES);
    let run = |nulls: &str| {
        place.job(&format!(
            "output = \"a.nut\"\n[[source]]\nfrom = \"sqlite:a.db\"\n\
             query = \"select id, x from t\"\nkey = \"{{id}}\"\nnulls = \"{nulls}\""
        ))
    };
    run("absent").report();
    assert_eq!(place.entries("a.nut"), ["1=String(\"é\")"]);
    run("empty").report();
    assert_eq!(place.entries("a.nut"), ["1=String(\"é\")", "2=String(\"\")"]);
    run("error").failed(3, "row 2: column \"x\": expected a value, found NULL");
    assert_eq!(place.entries("a.nut").len(), 2, "the last file stays");
}

#[test]
fn rows_that_cannot_be_stored_are_named() {
    let place = Place::new();
    place.sqlite(TYPES);
    for (query, key, expected) in [
        ("select id, x from t", "{x}", "row 2: column \"x\": expected a value for the key"),
        ("select id, x from t", "{y}", "expected a column \"y\", found \"id\", \"x\""),
        ("select id, x, x from t", "{id}.{column}", "expected one column \"x\", found several"),
        ("select id, x from missing", "{id}", "no such table: missing"),
        ("delete from t", "{id}", "expected one that only reads, found one that writes"),
        (
            "select id, cast(x'ff' as text) as x from t",
            "{id}",
            "row 1: column \"x\": expected text",
        ),
        ("select id, hex(zeroblob(70000)) as k, x from t where id = 1", "{k}", "expected a key"),
    ] {
        let value = if query.contains(" k,") { "--value=x" } else { "-q" };
        let (query, key) = (format!("--query={query}"), format!("--key={key}"));
        let run = place.run(&["--source=sqlite:a.db", &query, &key, "-o=a.nut", value]);
        run.failed(3, expected);
        assert_eq!(place.names(), ["a.db"], "{query}");
    }
    let run = place.run(&["--source=sqlite:b.db", "--query=select 1", "--key={a}", "-o=a.nut"]);
    run.failed(3, "unable to open database file");
    assert_eq!(place.names(), ["a.db"]);
}

#[test]
fn several_sources_make_one_snapshot() {
    let place = Place::new();
    place.sqlite(TYPES);
    place.file("names.csv", "id,name\n1,Ada\n2,Grace\n");
    let job = |more: &str| {
        format!(
            "output = \"a.nut\"\n{more}\n\
             [[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select id, x from t\"\n\
             key = \"{{id}}.x\"\n\
             [[source]]\nfrom = \"names.csv\"\nkey = \"{{id}}.{{column}}\"\n"
        )
    };
    let report = place.job(&job("metadata = { team = \"crm\" }")).report();
    assert_eq!(report["sources"][0]["rows"], 2);
    assert_eq!(report["sources"][1]["entries"], 2);
    let names = ["1.name=String(\"Ada\")", "1.x=String(\"é\")", "2.name=String(\"Grace\")"];
    assert_eq!(place.entries("a.nut"), names);
    let snapshot = nuthatch_snapshot::Snapshot::open(place.path().join("a.nut")).expect("a file");
    assert_eq!(snapshot.metadata().expect("metadata").get("team"), Some(&b"crm"[..]));

    place.file("names.csv", "id,x\n1,Ada\n");
    let run = place.job(&job(""));
    run.failed(
        3,
        "source 2 (names.csv, row 1): expected each key once, found \"1.x\" again, \
         first in source 1 (sqlite:a.db, row 1)",
    );
    place.job(&job("on_duplicate = \"last\"")).report();
    assert_eq!(place.entries("a.nut"), ["1.x=String(\"Ada\")"]);
    place.job(&job("on_duplicate = \"first\"")).report();
    assert_eq!(place.entries("a.nut"), ["1.x=String(\"é\")"]);
}

#[test]
fn all_sources_of_a_database_are_read_in_one_snapshot_of_it() {
    let place = Place::new();
    place.sqlite(
        "pragma journal_mode = wal; create table a(id integer, v integer);
         insert into a values (1, 1);",
    );
    // The second source is a pipe: its writer changes the database after the first one was read.
    let pipe = place.path().join("pipe.csv");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).expect("a pipe");
    place.file(
        "job.toml",
        "output = \"a.nut\"\n\
         [[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select id, v from a\"\n\
         key = \"first:{id}\"\n\
         [[source]]\nfrom = \"pipe.csv\"\nkey = \"pipe:{id}\"\n\
         [[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select id, v from a\"\n\
         key = \"last:{id}\"\n",
    );
    let mut command = place.command(&["job.toml"]);
    let child = command.stdout(std::process::Stdio::piped()).spawn().expect("the command");
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).expect("a reader");
    place.sqlite("update a set v = 2; insert into a values (2, 2);");
    std::io::Write::write_all(&mut writer, b"id,v\n1,0\n").expect("written");
    drop(writer);
    let run = Run::of(child.wait_with_output().expect("the command"));
    assert_eq!(run.status, Some(0), "{run:?}");
    let expected = ["first:1=I64(1)", "last:1=I64(1)", "pipe:1=String(\"0\")"];
    assert_eq!(place.entries("a.nut"), expected);
}

#[test]
fn an_interrupted_job_leaves_nothing() {
    let place = Place::new();
    place.sqlite("create table t(id integer);");
    let endless = "--query=with recursive n(i) as (select 1 union all select i + 1 from n) \
                   select i, i as v from n";
    let mut command = place.command(&["--source=sqlite:a.db", endless, "--key={i}", "-o=a.nut"]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().expect("the command");
    while place.names().len() == 1 {
        std::thread::yield_now();
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("a process");
    let run = Run::of(child.wait_with_output().expect("the command"));
    run.failed(3, "interrupted; nothing was published");
    assert_eq!(place.names(), ["a.db"]);
}

#[test]
fn an_interrupted_query_that_returns_nothing_ends() {
    let place = Place::new();
    place.sqlite("create table t(id integer);");
    let endless = "--query=with recursive n(i) as (select 1 union all select i + 1 from n) \
                   select i, i as v from n where i < 0";
    let mut command = place.command(&["--source=sqlite:a.db", endless, "--key={i}", "-o=a.nut"]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().expect("the command");
    while place.names().len() == 1 {
        std::thread::yield_now();
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a process");
    let run = Run::of(child.wait_with_output().expect("the command"));
    run.failed(3, "interrupted; nothing was published");
    assert_eq!(place.names(), ["a.db"]);
}
