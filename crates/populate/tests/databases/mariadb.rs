//! Jobs that read MariaDB.

use crate::job::{job, run, start};
use crate::place::{Place, Run};
use nuthatch_testing::database::Database;

#[test]
fn each_type_is_stored_as_documented() {
    let place = Place::new();
    let server = Database::mariadb(place.path());
    server.execute(
        "set names utf8mb4; use app;
         create table t (id int primary key, a tinyint, b bigint unsigned, c float, d double,
             e decimal(9, 3), f varchar(20), g varbinary(9), h text, i blob, j date, k timestamp,
             l json, m enum('x', 'y'), n bit(3), o bool, p text) charset utf8mb4;
         insert into t values (1, -2, 7, 0.5, 1e-300, 1.5, 'é', x'00ff', 'a''b', x'5c',
             '2026-11-27', '2026-11-27 10:00:00', '{\"a\": [1, 2]}', 'y', b'101', true, null)",
    );
    let more = "types = { l = \"flatten\", e = \"f64\" }";
    run(&place, &job(&server, "select * from t", more)).report();
    let time = server.execute("set time_zone = '+00:00'; select k from app.t");
    assert_eq!(
        place.entries("a.nut"),
        [
            "1.a=I64(-2)".to_owned(),
            "1.b=I64(7)".into(),
            "1.c=F64(0.5)".into(),
            "1.d=F64(1e-300)".into(),
            "1.e=F64(1.5)".into(),
            "1.f=String(\"é\")".into(),
            "1.g=Bytes([0, 255])".into(),
            "1.h=String(\"a'b\")".into(),
            "1.i=Bytes([92])".into(),
            "1.j=String(\"2026-11-27\")".into(),
            format!("1.k=String(\"{time}\")"),
            "1.l.a=I64List([1, 2])".into(),
            "1.m=String(\"y\")".into(),
            "1.n=Bytes([5])".into(),
            "1.o=I64(1)".into(),
        ]
    );
    server.execute("update app.t set b = 18446744073709551615");
    let failed = run(&place, &job(&server, "select id, b from t", ""));
    failed.failed(3, "column \"b\": expected an integer of at most 64 bits with a sign");
    run(&place, &job(&server, "select id, cast(b as char) as b from t", "")).report();
    run(&place, &job(&server, "select * from missing", "")).failed(3, "app.missing' doesn't exist");
    run(&place, &job(&server, "delete from t", "")).failed(3, "READ ONLY transaction");
}

#[test]
fn all_sources_see_one_snapshot_and_samples_are_queried() {
    let place = Place::new();
    let server = Database::mariadb(place.path());
    server.execute(
        "use app; create table t (id varchar(20) primary key, v int);
         insert into t values ('it''s \\\\ a', 1), ('b', 2)",
    );
    let pipe = place.path().join("pipe.csv");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).expect("a pipe");
    let source = |prefix: &str| {
        format!(
            "[[source]]\nfrom = \"{}\"\nquery = \"select id, v from t\"\n\
             key = \"{prefix}{{id}}\"\n",
            server.address()
        )
    };
    let job = format!(
        "output = \"a.nut\"\n{}[[source]]\nfrom = \"pipe.csv\"\nkey = \"pipe:{{id}}\"\n{}",
        source("a:"),
        source("b:")
    );
    let child = start(&place, &job);
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).expect("a reader");
    server.execute("update app.t set v = 9");
    std::io::Write::write_all(&mut writer, b"id,v\n0,x\n").expect("written");
    drop(writer);
    Run::of(child.wait_with_output().expect("the command")).report();
    let expected = [
        "a:b=I64(2)",
        "a:it's \\ a=I64(1)",
        "b:b=I64(2)",
        "b:it's \\ a=I64(1)",
        "pipe:0=String(\"x\")",
    ];
    assert_eq!(place.entries("a.nut"), expected);

    let sample = format!(
        "output = \"b.nut\"\n{}[gates]\nsample = 5\n\
         [[gates.query]]\nsql = \"select count(*) = 2 from t\"\n",
        source("")
    );
    let report = run(&place, &sample).report();
    assert_eq!(report["gates"][1]["passed"], true);
    assert_eq!(report["gates"][2]["found"], "2 entries of 2 rows are equal");
}

#[test]
fn a_job_runs_again_after_a_crash_of_the_server() {
    let place = Place::new();
    let mut server = Database::mariadb(place.path());
    server.execute(
        "use app; create table t (id int primary key, v int);
         insert into t select seq, seq from seq_1_to_5000",
    );
    let query = "select id, v, sleep(0.0001) as z from t";
    let child = start(&place, &job(&server, query, "values = [\"v\"]\n"));
    let running = "select count(*) from information_schema.processlist where info like '%0.0001%' \
                   and info not like '%processlist%'";
    while server.execute(running) == "0" {
        std::thread::yield_now();
    }
    server.crash_and_restart();
    let run = Run::of(child.wait_with_output().expect("the command"));
    assert!(run.stderr.contains("attempt 1: mysql://reader@127.0.0.1:"), "{run:?}");
    assert_eq!(run.report()["entries"], 5_000);
}

#[test]
fn the_server_does_not_go_on_with_a_query_whose_rows_are_not_read() {
    let place = Place::new();
    let server = Database::mariadb(place.path());
    let running = "select count(*) from information_schema.processlist where info like '%600%' \
                   and info not like '%processlist%'";
    // An interruption before the first row, and a preview of the first row only.
    let text = job(&server, "select 1 as id, sleep(600) as v", "");
    let child = start(&place, &text);
    while server.execute(running) == "0" {
        std::thread::yield_now();
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a process");
    let stopped = Run::of(child.wait_with_output().expect("the command"));
    stopped.failed(3, "interrupted; nothing was published");
    while server.execute(running) != "0" {
        std::thread::yield_now();
    }
    let rows = "select seq as id, if(seq < 20000, repeat('a', 100), sleep(600)) as v \
                from seq_1_to_20000";
    place.file("job.toml", job(&server, rows, ""));
    let mut command = place.command(&["job.toml", "--dry-run", "--rows", "1"]);
    let preview = Run::of(command.env("MYSQL_PWD", "a5ecret").output().expect("the command"));
    assert_eq!((preview.status, preview.stdout.lines().count()), (Some(0), 1), "{preview:?}");
    while server.execute(running) != "0" {
        std::thread::yield_now();
    }
}

#[test]
fn wrong_passwords_fail_at_once_and_are_not_shown() {
    let place = Place::new();
    let server = Database::mariadb(place.path());
    place.file("secret", "wr0ng\n");
    let with = |more: &str| job(&server, "select 1 as id, 2 as v", more);
    let failed = run(&place, &with("password_file = \"secret\""));
    failed.failed(3, "Access denied for user 'reader'");
    assert!(!failed.stderr.contains("wr0ng") && !failed.stderr.contains("attempt"), "{failed:?}");
    place.file("secret", "a5ecret\n");
    run(&place, &with("password_file = \"secret\"")).report();
    run(&place, &with("tls = \"verify\"\nattempts = 1")).failed(3, "");
}

/// The text protocol rounds floats to six digits.
#[test]
fn floats_and_times_keep_their_digits() {
    let place = Place::new();
    let server = Database::mariadb(place.path());
    server.execute(
        "use app; create table t (id int primary key, f float, d double, a datetime(3), b time(2),
             c datetime, e year);
         insert into t values (1, 16777217, 0.1, '2026-11-27 10:00:00.125', '-30:00:01.25',
             '2026-11-27 10:00:00', 2026), (2, 3.14159274, -0.25, null, null, null, null)",
    );
    run(&place, &job(&server, "select * from t", "")).report();
    assert_eq!(
        place.entries("a.nut"),
        [
            "1.a=String(\"2026-11-27 10:00:00.125\")",
            "1.b=String(\"-30:00:01.25\")",
            "1.c=String(\"2026-11-27 10:00:00\")",
            "1.d=F64(0.1)",
            "1.e=I64(2026)",
            "1.f=F64(16777216.0)",
            "2.d=F64(-0.25)",
            "2.f=F64(3.1415927)",
        ]
    );
}

#[test]
fn a_text_of_several_statements_is_not_executed() {
    let place = Place::new();
    let server = Database::mariadb(place.path());
    server.execute("use app; create table t (id int, v int); insert into t values (1, 1), (2, 2)");
    let several = "select id, v from t; commit; delete from t";
    run(&place, &job(&server, several, "")).failed(3, "You have an error in your SQL syntax");
    assert_eq!(server.execute("select count(*) from app.t"), "2");
    server.execute("set global sql_mode = 'NO_BACKSLASH_ESCAPES'");
    server.execute(
        "use app; create table k (id varchar(9), v int); insert into k values ('a\\b', 1)",
    );
    let sample = job(&server, "select id, v from k", "[gates]\nsample = 5\n");
    let report = run(&place, &sample).report();
    assert_eq!(report["gates"][1]["found"], "1 entries of 1 rows are equal");
}

#[test]
fn texts_with_nul_characters_are_compared() {
    let place = Place::new();
    let server = Database::mariadb(place.path());
    server.execute(
        "use app; create table t (id varchar(9) primary key, v int, c varchar(9)) charset utf8mb4;
         insert into t values (concat('a', char(0)), 1, 'k'), ('b', 2, concat('x', char(0)))",
    );
    let more = "values = [\"v\"]\nsince = \"c\"\n[gates]\nsample = 5\n";
    let job = job(&server, "select id, v, c from t", more);
    let report = run(&place, &job).report();
    assert_eq!(report["gates"][1]["found"], "2 entries of 2 rows are equal");
    let report = run(&place, &job).report();
    assert_eq!((&report["incremental"], &report["sources"][0]["rows"]), (&true.into(), &1.into()));
}
