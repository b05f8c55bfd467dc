//! Runs the whole benchmark of ordered stores on few rows. The run itself checks the checksum of
//! each scan.

use nuthatch_bench::store::{StoreOptions, run_stores};

fn output(json: bool) -> String {
    let directory = std::env::temp_dir();
    let (rows, key_len, value_len, writes, rounds) = (3000, 5, 20, 4, 1);
    let options = StoreOptions { rows, key_len, value_len, writes, rounds, json, directory };
    let mut out = Vec::new();
    run_stores(&options, &[], &mut out).expect("a run");
    String::from_utf8(out).expect("text")
}

#[test]
fn every_work_has_a_row_in_both_forms() {
    let (rows, table) = (output(true), output(false));
    for (work, systems) in [
        ("load", 2),
        ("scan", 2),
        ("scan_iterator", 1),
        ("scan_batches", 1),
        ("scan_stream", 1),
        ("scan_2_threads", 1),
        ("scan_range", 2),
        ("write", 2),
        ("write_64_tasks", 1),
    ] {
        let found = rows.matches(&format!("{{\"work\":\"{work}\",")).count();
        assert_eq!(found, systems, "{work}\n{rows}");
        assert!(table.contains(work), "{work}\n{table}");
    }
    assert!(!rows.contains("NaN"), "{rows}");
}

#[test]
fn keys_that_are_too_short_for_the_rows_are_refused() {
    for (rows, key_len) in [(100_001, 5), (3000, 4), (3000, 17)] {
        let options = StoreOptions { rows, key_len, ..StoreOptions::default() };
        let error = run_stores(&options, &[], &mut Vec::new()).expect_err("too short").to_string();
        assert!(error.starts_with("expected keys of 5 to 16 bytes"), "{error}");
    }
}
