//! The command line.

use crate::place::Place;

#[test]
fn a_dry_run_prints_the_first_entries_and_writes_nothing() {
    let place = Place::new();
    place.sqlite(
        "create table t(id integer, v text, b blob);
         insert into t values (1, 'a', x'00'), (2, 'b', null), (3, 'c', null);",
    );
    let arguments = [
        "--source=sqlite:a.db",
        "--query=select * from t",
        "--key={id}.{column}",
        "-o=a.nut",
        "--dry-run",
        "--rows=2",
    ];
    let run = place.run(&arguments);
    let expected = "{\"key\":\"1.v\",\"value\":\"a\"}\n\
                    {\"key\":\"1.b\",\"value\":{\"$bytes\":\"AA==\"}}\n\
                    {\"key\":\"2.v\",\"value\":\"b\"}\n";
    assert_eq!((run.status, &run.stdout[..]), (Some(0), expected), "{run:?}");
    assert_eq!(place.names(), ["a.db"]);
}

#[test]
fn contradictions_are_errors_of_the_command_line() {
    let place = Place::new();
    for (arguments, expected) in [
        (&[][..], "Usage: nuthatch populate [OPTIONS] [JOB]"),
        (&["job.toml", "--source=a.csv"], "cannot be used with"),
        (&["--source=a.csv", "-o=a.nut"], "--key <TEMPLATE>"),
        (&["--source=a.csv", "--key={id}"], "--output <FILE>"),
        (&["--source=a.csv", "--key=id", "-o=a.nut"], "without one, all rows have the same key"),
        (&["--source=a.csv", "--key={id}", "-o=a.nut", "--query=x"], "query is for databases only"),
        (&["--source=mysql://h/d", "--key={id}", "-o=a.nut"], "expected a query"),
        (&["--source=a.csv", "--key={id}", "-o=a.nut", "--column=a"], "expected NAME:TYPE"),
        (&["--source=a.csv", "--key={id}", "-o=a.nut", "--column=a:int"], "expected a type: bytes"),
        (&["--source=oracle://h", "--key={id}", "-o=a.nut", "--query=x"], "found oracle://"),
        (&["job.toml", "--every=soon"], "expected a time such as"),
        (&["job.toml", "--every=0s"], "expected a time above zero"),
        (&["job.toml", "--quiet", "--json"], "cannot be used with"),
        (&["job.toml", "--publish="], "expected a folder, or an address such as s3://bucket/path"),
    ] {
        place.run(arguments).failed(2, expected);
    }
    place.run(&["job.toml"]).failed(3, "job.toml: read: No such file");
    place.job("output = 1").failed(3, "job.toml: ");
    place.job("output = \"a\"\n[[source]]\nfrom = \"a.csv\"\nkee = \"x\"\n").failed(3, "line 4");
}

#[test]
fn passwords_are_not_shown() {
    let place = Place::new();
    for address in [
        "postgresql://u:a5ecret@127.0.0.1:1/d?connect_timeout=1",
        "mysql://u:a5ecret@127.0.0.1:1/d",
        "postgresql://u:a5ecret@127.0.0.1:port/d",
    ] {
        let source = format!("from = \"{address}\"\nquery = \"select 1\"\nkey = \"{{a}}\"\n");
        let run = place.job(&format!("output = \"a.nut\"\nattempts = 1\n[[source]]\n{source}"));
        assert_eq!(run.status, Some(3), "{run:?}");
        assert!(!run.stderr.contains("a5ecret"), "{}", run.stderr);
    }
    for line in [
        "from = \"postgresql://u:a5ecret@127.0.0.1:1/d",
        "from = [\"postgresql://u:a5ecret@127.0.0.1:1/d\"]",
        "from = \"postgresql://u:1#a5ecret@127.0.0.1:1/d\"",
        "from = \"postgresql:/u:a5ecret@127.0.0.1:1/d\"",
        "from = \"https://u:a5ecret@127.0.0.1:1/d.csv\"",
        "from = \"https://127.0.0.1:1/d.csv?sig=a5ecret\"",
        "from = \"mysql://u:a5ecret@127.0.0.1:1/d\" extra",
    ] {
        let run = place.job(&format!("output = \"a.nut\"\n[[source]]\nkey = \"{{a}}\"\n{line}\n"));
        assert_eq!(run.status, Some(3), "{line}: {run:?}");
        assert!(!run.stderr.contains("a5ecret"), "{line}: {}", run.stderr);
        assert!(!run.stdout.contains("a5ecret"), "{line}: {}", run.stdout);
    }
    let run = place.job(
        "output = \"a.nut\"\n[[source]]\nfrom = \"mysql://u@127.0.0.1:1/d\"\nquery = \"x\"\n\
         key = \"{a}\"\npassword_file = \"missing\"\n",
    );
    run.failed(3, "password_file: ");
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    place.file("a.csv", "id,v\n1,x\n");
    let run = |output: &str| {
        let output = format!("-o={output}");
        place.run(&["--source=a.csv", "--key={id}", &output])
    };
    run("missing/a.nut").failed(3, "missing/");
    run("/dev/null").failed(3, "/dev/null: create: expected a file to replace");
    run(".").failed(3, "expected a path that ends in the name of a file");
    run("-").failed(2, "output: expected the path of a file, found -");
    run("a.csv").failed(3, "expected another file than that of source 1");
    std::os::unix::fs::symlink("a.csv", place.path().join("link.csv")).expect("a link");
    run("link.csv").failed(3, "expected another file than that of source 1");
    place.file("job.toml", "output = \"job.toml\"\n[[source]]\nfrom = \"a.csv\"\nkey = \"{id}\"");
    place.run(&["job.toml"]).failed(2, "job.toml: expected another file than the job");
    assert_eq!(place.names(), ["a.csv", "job.toml", "link.csv"]);
}

#[test]
fn numbers_of_zero_and_empty_destinations_are_refused() {
    let place = Place::new();
    place.file("a.csv", "id,v\n1,x\n");
    for (line, expected) in [
        ("shards = 0", "job.toml: shards: expected at least 1, found 0"),
        ("attempts = 0", "job.toml: attempts: expected at least 1, found 0"),
        (
            "publish = { to = \"d\", keep = 0 }",
            "job.toml: publish.keep: expected at least 1, found 0",
        ),
        (
            "publish = \"\"",
            "job.toml: publish: expected a folder, or an address such as s3://bucket/path, found \
             an empty text",
        ),
        ("publish = { to = \"\" }", "job.toml: publish.to: expected a folder, or an address"),
    ] {
        let job = format!("output = \"a.nut\"\n{line}\n[[source]]\nfrom = \"a.csv\"\n");
        place.job(&format!("{job}key = \"{{id}}\"\n")).failed(3, expected);
    }
    assert_eq!(place.names(), ["a.csv", "job.toml"]);
}

#[test]
fn a_job_that_cannot_run_is_reported_as_json() {
    let place = Place::new();
    let source = "[[source]]\nfrom = \"missing.csv\"\nkey = \"{id}\"\n";
    place.file("job.toml", format!("output = \"a.nut\"\n{source}"));
    place.file("invalid.toml", "output = 1\n");
    for arguments in [&["absent.toml"][..], &["invalid.toml"], &["job.toml", "--dry-run"]] {
        let run = place.run(&[arguments, &["--json"]].concat());
        let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("an object");
        let error = report["error"].as_str().expect("an error");
        run.failed(3, error);
        assert_eq!(report["gates"], serde_json::json!([]));
    }
}
