//! A whole run of ordered stores on few rows: what is read is added up and compared in the run.

use nuthatch_bench::store::{Lmdb, StoreOptions, run_stores};

fn output(json: bool) -> String {
    let directory = std::env::temp_dir();
    let options = StoreOptions { rows: 3000, value_len: 20, writes: 4, rounds: 1, json, directory };
    let mut out = Vec::new();
    run_stores::<Lmdb>(&options, false, &mut out).expect("a run");
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
