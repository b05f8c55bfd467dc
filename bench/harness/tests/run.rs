//! Runs the whole benchmark on few rows, and checks that all systems are measured and the output is
//! valid.

use nuthatch_bench::{Options, run};

fn output(options: &Options) -> String {
    let mut out = Vec::new();
    run(options, &mut out).expect("a run");
    String::from_utf8(out).expect("text")
}

fn small(json: bool) -> Options {
    Options { keys: vec![1000, 3], vectors: 10, rounds: 2, json, ..Options::default() }
}

#[test]
fn rows_cover_every_work() {
    let text = output(&small(true));
    let lookups = ["get_hit", "get_miss", "get_hit_2_threads"];
    let both = ["nuthatch", "nuthatch-huge"];
    let mut expected = vec![("build", "hashbrown"), ("build", "nuthatch")];
    expected.extend(lookups.iter().map(|work| (*work, "hashbrown")));
    for system in both {
        expected.extend(lookups.iter().map(|work| (*work, system)));
        expected.extend([("get_many", system), ("open", system)]);
    }
    for (work, system) in expected {
        let row =
            format!("{{\"work\":\"{work}\",\"system\":\"{system}\",\"keys\":1000,\"ns_per_op\":");
        assert_eq!(text.matches(&row).count(), 1, "{row}\n{text}");
    }
    let overhead =
        "{\"work\":\"file_overhead\",\"system\":\"nuthatch\",\"keys\":3,\"bytes_per_entry\":";
    assert_eq!(text.matches(overhead).count(), 1, "{text}");
    assert_eq!(text.matches("\"work\":\"get_vector\"").count(), 3, "{text}");
    assert_eq!(text.matches("\"keys\":10,").count(), 3, "vectors have no other results: {text}");
}

#[test]
fn each_time_has_a_ratio_to_the_hash_map() {
    for row in output(&small(true)).lines().filter(|row| row.contains("ns_per_op")) {
        // The hash map has no files to open.
        let expected = !row.contains("\"work\":\"open\"");
        assert_eq!(row.contains("times_hashbrown"), expected, "{row}");
    }
}

#[test]
fn rows_contain_only_valid_json_numbers() {
    let text = output(&small(true));
    for word in ["NaN", "inf"] {
        assert!(!text.contains(word), "{text}");
    }
}

#[test]
fn tables_name_their_size() {
    let text = output(&small(false));
    assert!(text.starts_with("1,000 keys, medians of 2 rounds\n"), "{text}");
    assert!(text.contains("10 vectors of 128 f32, medians of 2 rounds\n"), "{text}");
}

#[test]
fn a_run_removes_its_files() {
    let directory = std::env::temp_dir().join(format!("nuthatch-left-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a folder");
    output(&Options { directory: directory.clone(), ..small(true) });
    let left = std::fs::read_dir(&directory).expect("the folder").count();
    std::fs::remove_dir(&directory).expect("an empty folder");
    assert_eq!(left, 0);
}
