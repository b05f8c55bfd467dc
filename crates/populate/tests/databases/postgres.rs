//! Jobs that read PostgreSQL.

use crate::job::{job, run, start};
use crate::place::{Place, Run};
use nuthatch_testing::database::Database;

const ROWS: u64 = 50_000;

fn table(server: &Database) {
    server.execute(&format!(
        "create table t as select i::bigint as id, 'value ' || i as v, i / 4.0::float8 as f
         from generate_series(1, {ROWS}) i; alter table t add primary key (id); analyze t"
    ));
}

#[test]
fn each_type_is_stored_as_documented() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    server.execute(
        r#"create type mood as enum ('sad', 'ok'); create domain positive as int check (value > 0);
        create table t (id int, a smallint, b bigint, c real, d double precision, e numeric(9, 3),
            f boolean, g text, h varchar(9), i char(3), j uuid, k date, l timestamptz, m bytea,
            n json, o jsonb, p int[], q float8[], r real[], s text[], u mood, v positive, w inet,
            x bool[], y text);
        insert into t values (1, -2, 9223372036854775807, 0.1, 1e-300, 1.500, true,
            E'a\tb\\c\nd', 'é', 'x', '123e4567-e89b-12d3-a456-426614174000', '2026-11-27',
            '2026-11-27 10:00:00+02', '\x00ff5c', '{"a": [1, 2]}', '{"b": "\n"}', '{1,-2}',
            '{0.5,NaN}', '{0.25}', '{"a b","c\"d",NULLS}', 'ok', 7, '10.0.0.1', '{t,f}', null);"#,
    );
    let more = "types = { e = \"f64\", n = \"flatten\" }";
    let report = run(&place, &job(&server, "select * from t", more)).report();
    assert_eq!(report["sources"][0]["rows"], 1);
    assert_eq!(
        place.entries("a.nut"),
        [
            "1.a=I64(-2)",
            "1.b=I64(9223372036854775807)",
            "1.c=F64(0.1)",
            "1.d=F64(1e-300)",
            "1.e=F64(1.5)",
            "1.f=Bool(true)",
            "1.g=String(\"a\\tb\\\\c\\nd\")",
            "1.h=String(\"é\")",
            "1.i=String(\"x  \")",
            "1.j=String(\"123e4567-e89b-12d3-a456-426614174000\")",
            "1.k=String(\"2026-11-27\")",
            "1.l=String(\"2026-11-27 08:00:00+00\")",
            "1.m=Bytes([0, 255, 92])",
            "1.n.a=I64List([1, 2])",
            "1.o=String(\"{\\\"b\\\": \\\"\\\\n\\\"}\")",
            "1.p=I64List([1, -2])",
            "1.q=F64List([0.5, NaN])",
            "1.r=F32List([0.25])",
            "1.s=StringList([\"a b\", \"c\\\"d\", \"NULLS\"])",
            "1.u=String(\"ok\")",
            "1.v=I64(7)",
            "1.w=String(\"10.0.0.1\")",
            "1.x=String(\"{t,f}\")",
        ]
    );
    // Without the other columns, the server sends the binary format.
    let documented = place.entries("a.nut");
    server.execute("insert into t (id, d) values (2, 'NaN'), (3, '-infinity'), (4, '-0')");
    let query = "select id, a, b, d, f, g, h, i, j, m, n, o, u, v, y, 4294967295::oid as z from t";
    run(&place, &job(&server, query, "types = { n = \"flatten\" }")).report();
    let mut expected = documented;
    expected.retain(|entry| {
        !["c", "e", "k", "l", "p", "q", "r", "s", "w", "x"].contains(&&entry[2..3])
    });
    expected.push("1.z=I64(4294967295)".to_owned());
    for (id, float) in [(2, "NaN"), (3, "-inf"), (4, "-0.0")] {
        expected.extend([format!("{id}.d=F64({float})"), format!("{id}.z=I64(4294967295)")]);
    }
    assert_eq!(place.entries("a.nut"), expected);
    server.execute("create table bad as select 1 as id, '{1,null}'::int[] as p");
    let failed = run(&place, &job(&server, "select * from bad", ""));
    failed.failed(3, "row 1: column \"p\": expected an array without NULL");
    run(&place, &job(&server, "select nothing from t", ""))
        .failed(3, "column \"nothing\" does not");
    run(&place, &job(&server, "delete from t returning id, a", ""))
        .failed(3, "read-only transaction");
}

#[test]
fn ranges_and_one_connection_make_the_same_bytes() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    table(&server);
    server.execute("alter table t drop constraint t_pkey, alter id drop not null");
    let query = "select id, v, f, coalesce(id, 0) as key from t";
    let with_key = |more: &str| job(&server, query, more).replace("{id}.", "{key}.");
    assert_eq!(run(&place, &with_key("")).report()["sources"][0]["rows"], ROWS);
    let one = std::fs::read(place.path().join("a.nut")).expect("a file");
    let report = run(&place, &with_key("split = \"id\"\nreaders = 4")).report();
    assert_eq!(report["sources"][0]["rows"], ROWS);
    assert!(std::fs::read(place.path().join("a.nut")).expect("a file") == one);
    // A row without a value of the column is in one range, too.
    server.execute("insert into t values (null, 'no id', 0)");
    let report = run(&place, &with_key("split = \"id\"")).report();
    assert_eq!(report["sources"][0]["rows"], ROWS + 1);
    run(&place, &with_key("split = \"v\"")).failed(3, "split: expected a column of integers");
    run(&place, &with_key("split = \"x\"")).failed(3, "split: expected a column of the query");
}

/// Starts a job whose second source is a pipe, and calls `change` after the first rows were read.
fn change_midway(place: &Place, job: &str, change: impl FnOnce()) -> Run {
    let pipe = place.path().join("pipe.csv");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).expect("a pipe");
    let child = start(place, job);
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).expect("a reader");
    change();
    std::io::Write::write_all(&mut writer, b"id,v\n0,x\n").expect("written");
    drop(writer);
    Run::of(child.wait_with_output().expect("the command"))
}

#[test]
fn all_sources_and_gates_see_one_snapshot_of_the_database() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    table(&server);
    let source = |key: &str, more: &str| {
        format!(
            "[[source]]\nfrom = \"{}\"\nquery = \"select id, v from t\"\n\
             key = \"{key}{{id}}\"\n{more}\n",
            server.address()
        )
    };
    let job = format!(
        "output = \"a.nut\"\n{}[[source]]\nfrom = \"pipe.csv\"\nkey = \"pipe:{{id}}\"\n{}\
         [gates]\nmin_entries = {}\n[[gates.query]]\nsql = \"select count(*) = {ROWS} from t\"\n",
        source("a:", "split = \"id\""),
        source("b:", "split = \"id\"\nreaders = 3"),
        2 * ROWS + 1,
    );
    let run = change_midway(&place, &job, || {
        server.execute("delete from t where id > 10; update t set v = 'changed'");
    });
    assert_eq!(run.report()["entries"], 2 * ROWS + 1);
    let snapshot = nuthatch_snapshot::Snapshot::open(place.path().join("a.nut")).expect("a file");
    for key in ["a:7", "b:7"] {
        let value = snapshot.get_string(key.as_bytes()).expect("a string");
        assert_eq!(value.as_deref(), Some("value 7"));
    }
}

/// Connections of ranges are ended while they read; those ranges are read again.
#[test]
fn ranges_whose_connection_is_lost_are_read_again() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    table(&server);
    let text = job(
        &server,
        "select id, v, f, (case when id % 20 = 0 then pg_sleep(0.001) end)::text as z from t",
        "values = [\"v\", \"f\"]\nsplit = \"id\"\nreaders = 4\n",
    );
    let mut child = start(&place, &text);
    let mut ended = 0;
    while child.try_wait().expect("a child").is_none() {
        if ended < 5 {
            let count = server.execute(
                "select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity
                 where application_name = 'nuthatch-populate' and query like 'copy%' limit 1) a",
            );
            ended += count.parse::<u32>().expect("a count");
        }
        std::thread::yield_now();
    }
    let run = Run::of(child.wait_with_output().expect("the command"));
    assert!(ended > 0, "no connection was ended");
    let report = run.report();
    assert_eq!((&report["attempts"], &report["entries"]), (&1.into(), &(2 * ROWS).into()));
}

/// A server that ends and comes back takes the snapshot with it: the job runs again.
#[test]
fn a_job_runs_again_after_a_crash_of_the_server() {
    let place = Place::new();
    let mut server = Database::postgres(place.path());
    table(&server);
    let job = job(
        &server,
        "select id, v, (case when id % 20 = 0 then pg_sleep(0.001) end)::text as z from t",
        "values = [\"v\"]\n",
    );
    let child = start(&place, &job);
    let running = "select count(*) from pg_stat_activity where query like 'copy%' \
                   and application_name = 'nuthatch-populate'";
    while server.execute(running) == "0" {
        std::thread::yield_now();
    }
    server.crash_and_restart();
    let run = Run::of(child.wait_with_output().expect("the command"));
    assert!(run.stderr.contains("attempt 1: postgresql://postgres@127.0.0.1:"), "{run:?}");
    let report = run.report();
    assert!(report["attempts"].as_u64().expect("a number") > 1, "{report}");
    assert_eq!(report["entries"], ROWS);
}

#[test]
fn samples_and_changed_rows_are_queried() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    server.execute(
        "create table t (id text, region text, v int, changed timestamptz);
         insert into t values ('it''s \\ \"a\"', 'eu', 1, '2026-01-01'),
             ('b', 'us', 2, '2026-01-02')",
    );
    let job = format!(
        "output = \"a.nut\"\n[[source]]\nfrom = \"{}\"\n\
         query = \"select id, region, v, changed from t -- all of them\"\n\
         key = \"{{region}}:{{id}}\"\nvalues = [\"v\"]\nsince = \"changed\"\n\
         [gates]\nsample = 10\n",
        server.address()
    );
    let report = run(&place, &job).report();
    assert_eq!(report["gates"][1]["found"], "2 entries of 2 rows are equal");
    server.execute("update t set v = 3, changed = '2026-01-03' where id = 'b'");
    let report = run(&place, &job).report();
    assert_eq!((&report["incremental"], &report["sources"][0]["rows"]), (&true.into(), &1.into()));
    assert_eq!(place.entries("a.nut"), ["eu:it's \\ \"a\"=I64(1)", "us:b=I64(3)"]);
}

/// Regression test: rows that changed later were not read, since no time is later.
#[test]
fn an_infinite_time_makes_each_run_a_full_one() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    for (column, last) in [("timestamptz", "infinity"), ("date", "infinity"), ("numeric", "NaN")] {
        let first = if column == "numeric" { "1" } else { "2026-01-01" };
        server.execute(&format!(
            "drop table if exists t; create table t (id int, v int, changed {column});
             insert into t values (1, 1, '{first}'), (2, 2, '{last}')"
        ));
        let query = format!("select id, v, changed from t -- {column}");
        let job = job(&server, &query, "values = [\"v\"]\nsince = \"changed\"\n");
        run(&place, &job).report();
        server.execute("update t set v = 3 where id = 1; delete from t where id = 2");
        server.execute(&format!("insert into t values (4, 4, '{last}')"));
        let run = run(&place, &job);
        assert_eq!(run.report()["incremental"], false, "{column}");
        assert!(run.stderr.contains("since: expected a finite number or time"), "{run:?}");
        assert_eq!(place.entries("a.nut"), ["1.v=I64(3)", "4.v=I64(4)"], "{column}");
    }
}

#[test]
fn wrong_passwords_fail_at_once_and_are_not_shown() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    place.file("secret", "wr0ng\n");
    let with = |more: &str| job(&server, "select 1 as id, 2 as v", more);
    run(&place, &with("password_file = \"secret\"")).failed(3, "password authentication failed");
    assert!(!run(&place, &with("password_file = \"secret\"")).stderr.contains("wr0ng"));
    place.file("secret", "a5ecret\n");
    run(&place, &with("password_file = \"secret\"")).report();
    run(&place, &with("password_env = \"PGPASSWORD\"")).report();
    run(&place, &with("password_env = \"NOT_SET\"")).failed(3, "the variable NOT_SET is not set");
    run(&place, &with("tls = \"verify\"")).failed(3, "server does not support TLS");
}

/// Each range evaluates the query again. This query returns one row less in a COPY statement,
/// in each run: rows chosen at random have, now and then, the expected number.
#[test]
fn ranges_that_do_not_have_all_rows_are_an_error() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    table(&server);
    let limited = "select id, v from t order by id \
                   limit case when current_query() ilike 'copy%' then 19999 else 20000 end";
    run(&place, &job(&server, limited, "split = \"id\"\n"))
        .failed(3, "split: expected the 20000 rows of the query in its ranges, found 19999");
    let last = "select id, 'k' as id2, v from t order by id desc";
    let text = job(&server, last, "values = [\"v\"]\nsplit = \"id\"\nreaders = 4\n");
    let text = text.replace("{id}.{column}", "{id2}");
    run(&place, &format!("on_duplicate = \"last\"\n{text}")).report();
    assert_eq!(place.entries("a.nut"), ["k=String(\"value 1\")"], "the order of the query");
}

#[test]
fn a_text_of_several_statements_is_not_executed() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    table(&server);
    let several = "select id, v from t; commit; delete from t";
    run(&place, &job(&server, several, "")).failed(3, "multiple commands");
    assert_eq!(server.execute("select count(*) from t"), ROWS.to_string());
    // The text of a key is never a part of the query of a sample.
    server.execute(
        "create table k (id text, v int); insert into k values (E'\\\\'' or true -- ', 1), ('b', 2);
         alter role postgres set standard_conforming_strings = off",
    );
    let sample = job(&server, "select id, v from k", "[gates]\nsample = 5\n");
    let report = run(&place, &sample).report();
    assert_eq!(report["gates"][1]["found"], "2 entries of 2 rows are equal");
}

/// The connection that keeps the snapshot is ended, too: no range can be read again.
#[test]
fn a_job_runs_again_if_all_its_connections_are_lost() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    table(&server);
    let query = "select id, v, (case when id % 20 = 0 then pg_sleep(0.001) end)::text as z from t";
    let child = start(&place, &job(&server, query, "values = [\"v\"]\nsplit = \"id\"\n"));
    let copying = "select count(*) from pg_stat_activity where query like 'copy%' \
                   and application_name = 'nuthatch-populate'";
    while server.execute(copying) == "0" {
        std::thread::yield_now();
    }
    server.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'nuthatch-populate'",
    );
    let run = Run::of(child.wait_with_output().expect("the command"));
    let report = run.report();
    assert!(report["attempts"].as_u64() > Some(1), "{report}");
    assert_eq!((&report["entries"], &report["sources"][0]["rows"]), (&ROWS.into(), &ROWS.into()));
}

/// Regression test: the message had the number of a row among those of one reader.
#[test]
fn rows_of_ranges_have_no_numbers_in_messages() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    table(&server);
    let query = "select id, case id when 7000 then 'x' else '1' end as v from t";
    for (split, expected) in [("", ": row 7000: column"), ("split = \"id\"\n", ": column")] {
        let more = format!("types = {{ v = \"i64\" }}\n{split}");
        let failed = run(&place, &job(&server, query, &more));
        failed.failed(3, &format!("{expected} \"v\": expected an integer"));
        assert_eq!(failed.stderr.contains(": row "), split.is_empty(), "{failed:?}");
    }
}

#[test]
fn a_column_without_a_highest_value_cannot_be_since() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    let query = "select 1 as id, 'true'::bool as changed";
    let failed = run(&place, &job(&server, query, "since = \"changed\"\n"));
    failed.failed(3, "since: the highest value of \"changed\" cannot be read: ");
}

#[test]
fn an_interruption_ends_a_query_that_returns_nothing_and_a_server_that_does_not_answer() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = silent.local_addr().expect("an address").port();
    let sleeping = job(&server, "select 1 as id, pg_sleep(600)::text as v", "");
    let unanswered = sleeping.replace(&server.port().to_string(), &port.to_string());
    for text in [sleeping, unanswered.clone(), unanswered.replace("postgresql:", "mysql:")] {
        let mut child = start(&place, &text);
        if text.contains(&server.port().to_string()) {
            let sleeping = "select count(*) from pg_stat_activity where query like 'copy%600%'";
            while server.execute(sleeping) == "0" {
                assert!(child.try_wait().expect("a child").is_none());
                std::thread::yield_now();
            }
        } else {
            drop(silent.accept().map(std::mem::forget));
        }
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a process");
        let run = Run::of(child.wait_with_output().expect("the command"));
        run.failed(3, "interrupted; nothing was published");
        assert!(!place.names().iter().any(|name| name.contains("tmp")), "{:?}", place.names());
    }
    let running = "select count(*) from pg_stat_activity where query like 'copy%600%' \
                   and state = 'active'";
    while server.execute(running) != "0" {
        std::thread::yield_now();
    }
}
