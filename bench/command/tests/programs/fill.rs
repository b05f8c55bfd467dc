//! Tests of `nuthatch-bench fill` with a small cache.

use crate::command::Folder;
use serde_json::Value;

const SMALL: [&str; 5] = ["fill", "--memory", "16MiB", "--times", "2"];

#[test]
fn writes_are_measured_by_both_clocks() {
    let run = Folder::new().run(&[&SMALL[..], &["--json"]].concat());
    assert_eq!(run.status, Some(0), "{run:?}");
    let rows: Vec<Value> = serde_json::from_str(&run.stdout).expect("rows");
    let times: Vec<_> = rows.iter().map(|row| row["time"].as_str()).collect();
    assert_eq!(times, [Some("clock"), Some("processor")]);
    for row in &rows {
        let number = |name: &str| row[name].as_u64().expect(name);
        assert_eq!(number("writes"), 2 * (16 << 20) / 116);
        assert!(number("evicted") > 0 && number("p50_ns") > 0, "{row}");
        let shares = ["p50_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns"].map(number);
        assert!(shares.is_sorted(), "{row}");
    }
}

#[test]
fn the_table_counts_writes_above_a_millisecond() {
    let run = Folder::new().run(&SMALL);
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!((run.status, lines.len()), (Some(0), 4), "{run:?}");
    assert!(lines[1].ends_with("above 1 ms"), "{run:?}");
}

#[test]
fn too_little_memory_is_refused() {
    let run = Folder::new().run(&["fill", "--memory", "1MiB"]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("memory"), "{run:?}");
}
