//! Tests of `nuthatch-bench eviction` on small traces.

use crate::command::{Folder, Run};
use serde_json::Value;

const SMALL: [&str; 5] = ["eviction", "--memory", "16MiB", "--requests", "80000"];

fn bench(folder: &Folder, arguments: &[&str]) -> Run {
    folder.run(&[&SMALL, arguments].concat())
}

/// Returns the rows of a run in JSON.
#[track_caller]
fn rows(run: &Run) -> Vec<Value> {
    assert_eq!(run.status, Some(0), "{run:?}");
    serde_json::from_str(&run.stdout).expect("an array of rows")
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("a number {field} in {row}"))
}

#[test]
fn all_traces_are_replayed_and_the_optimum_is_the_best() {
    let folder = Folder::new();
    let run = bench(&folder, &["--no-redis", "--json"]);
    let rows = rows(&run);
    assert_eq!(rows.len(), 10 * 4, "{}", run.stdout);
    for of_trace in rows.chunks(4) {
        let names = of_trace.iter().map(|row| row["system"].as_str().expect("a name"));
        assert_eq!(names.collect::<Vec<_>>(), ["nuthatch", "lru", "lfu", "optimum"]);
        let optimum = number(&of_trace[3], "misses");
        for row in of_trace {
            let misses = number(row, "misses");
            assert!(optimum <= misses, "{row} against {}", of_trace[3]);
            assert!(misses >= number(row, "items"), "{row}");
            assert!((number(row, "miss_ratio") - misses / 80_000.0).abs() < 1e-4, "{row}");
        }
        assert_eq!(of_trace[1]["times_lru"], Value::from(1.0));
    }
}

#[test]
fn the_seed_determines_the_run() {
    let folder = Folder::new();
    let run =
        |seed| bench(&folder, &["--no-redis", "--trace", "shift,loop", "--seed", seed]).stdout;
    let one = run("7");
    assert_eq!(one, run("7"));
    assert_ne!(one.replace("seed 7", ""), run("8").replace("seed 8", ""));
    let lines: Vec<_> = one.lines().collect();
    assert!(lines[0].starts_with("16.0 MiB of memory, 80,000 requests"), "{one}");
    // The table has the order of the list of all traces, not of the command line.
    assert!(lines[4].starts_with("loop ") && lines[5].starts_with("shift "), "{one}");
    assert_eq!(lines.len(), 6, "{one}");
}

#[test]
fn redis_holds_the_same_payload() {
    let folder = Folder::new();
    let run = bench(&folder, &["--trace", "zipf-0.8,sizes", "--json"]);
    let rows = rows(&run);
    assert_eq!(rows.len(), 2 * 6, "redis-server is needed: {run:?}");
    for of_trace in rows.chunks(6) {
        let held = number(&of_trace[0], "held_bytes");
        for (row, name) in of_trace[3..5].iter().zip(["redis-lru", "redis-lfu"]) {
            assert_eq!(row["system"], name);
            let share = number(row, "held_bytes") / held;
            assert!((0.9..1.1).contains(&share), "{share} of what nuthatch holds: {row}");
            let misses = number(row, "misses");
            assert!(misses > number(&of_trace[5], "misses"), "{row}");
            assert!(misses < number(row, "requests"), "{row}");
        }
    }
    // With the same memory, Redis holds less payload, since its items have overhead.
    let run = bench(&folder, &["--trace", "zipf-0.8", "--equal", "memory", "--json"]);
    let same = number(&self::rows(&run)[3], "held_bytes");
    assert!((8e6..16e6).contains(&same), "{}", run.stdout);
    let share = same / number(&rows[3], "held_bytes");
    assert!((share - 1.0).abs() > 0.01, "{share} of what it holds with as much payload");
}

#[test]
fn without_redis_the_other_systems_are_measured() {
    let folder = Folder::new();
    let arguments = [&SMALL[..], &["--trace", "loop", "--json"]].concat();
    let output = folder.command(&arguments).env("PATH", folder.path("")).output().expect("a run");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("no redis-server is on the PATH"), "{stderr}");
    assert_eq!(stdout.matches("\"system\"").count(), 4, "{stdout}");
    // A Redis program that is named must exist and be a Redis server.
    for program in ["./nothing", "true"] {
        let run = bench(&folder, &["--redis", program]);
        assert_eq!(run.status, Some(3), "{run:?}");
        assert!(run.stderr.contains(program), "{run:?}");
    }
}

#[test]
fn files_are_replayed_and_errors_name_the_file() {
    let folder = Folder::new();
    folder.file("good.csv", "a,10\nb,20\na,10\n").file("bad.csv", "a,10\nb,ten\n");
    folder.file("half.oracleGeneral", [0; 30]).file("empty.csv", "");
    let run = bench(&folder, &["--no-redis", "--json", "--file", "good.csv"]);
    for row in rows(&run) {
        assert_eq!((&row["trace"], number(&row, "misses")), (&Value::from("good.csv"), 2.0));
    }
    let run = folder.run_with(&["eviction", "--no-redis", "--file", "-"], b"k\nk\nk\n");
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stdout.contains("<stdin>"), "{run:?}");
    for (file, message) in [
        ("bad.csv", "bad.csv:2: expected the bytes of the value after the key"),
        ("half.oracleGeneral", "half.oracleGeneral: at byte 24: expected a record of 24 bytes"),
        ("empty.csv", "empty.csv: expected requests, found none"),
        ("none.csv", "none.csv: open: "),
    ] {
        let run = bench(&folder, &["--no-redis", "--file", file]);
        assert_eq!(run.status, Some(3), "{run:?}");
        assert!(run.stderr.contains(message), "{run:?}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let folder = Folder::new();
    for arguments in [
        &["--trace", "zipf"][..],
        &["--requests", "0"],
        &["--memory", "1MiB"],
        &["--no-redis", "--redis", "x"],
        &["--equal", "speed"],
    ] {
        let run = folder.run(&[&["eviction"], arguments].concat());
        assert_eq!((run.status, &run.stdout[..]), (Some(2), ""), "{run:?}");
    }
}
