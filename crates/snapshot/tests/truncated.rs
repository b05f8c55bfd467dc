//! Tests of files that are truncated while they are mapped: an error, and the process continues.
#![cfg(feature = "sigbus")]

use nuthatch_snapshot::{OpenOptions, Residency, Snapshot, Value, Writer};
use std::fs::OpenOptions as FileOptions;
use std::path::Path;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const ROWS: usize = 40_000;

fn build(path: &Path) -> AnyResult {
    let mut writer = Writer::create(path)?;
    for row in 0..ROWS {
        let value = format!("value {row}").repeat(10);
        writer.insert(format!("key {row}").as_bytes(), Value::String(&value))?;
    }
    writer.finish()?;
    Ok(())
}

fn truncate(path: &Path, len: u64) -> AnyResult {
    Ok(FileOptions::new().write(true).open(path)?.set_len(len)?)
}

#[test]
fn lookups_in_a_truncated_file_end_and_the_next_check_reports_it() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("cut.nut");
    for len in [0, 4096, 700_000] {
        build(&path)?;
        let snapshot = Snapshot::open(&path)?;
        assert_eq!(snapshot.get_string(b"key 7")?.map(|value| value.len()), Some(70));
        snapshot.check_readable()?;
        truncate(&path, len)?;
        for row in 0..ROWS {
            // The result is not checked: a key may be missing. The check below detects that.
            let _ = snapshot.get_string(format!("key {row}").as_bytes());
        }
        let error = snapshot.check_readable().expect_err("a lost page");
        assert_eq!(error.code(), "unreadable", "{error}");
        let text = error.to_string();
        let expected = "the file was truncated or could not be read while it was mapped";
        assert!(text.ends_with(expected) && text.contains("cut.nut"), "{text}");
    }
    Ok(())
}

#[test]
fn verifying_and_iterating_a_truncated_file_report_it_and_no_damage() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("cut.nut");
    // Truncated at a page boundary: the rest of a partial page would read as zeros without a
    // signal.
    for (number, pages) in [0, 1, 120, 490].into_iter().enumerate() {
        let len = pages * 4096;
        build(&path)?;
        let snapshot = Snapshot::open(&path)?;
        truncate(&path, len)?;
        if number % 2 == 0 {
            let error = snapshot.verify().expect_err("a lost page");
            assert_eq!(error.code(), "unreadable", "{error}");
        }
        let codes = snapshot.iter().filter_map(|entry| entry.err().map(|error| error.code()));
        assert!(codes.into_iter().all(|code| code == "unreadable"), "{len} bytes left");
        assert_eq!(snapshot.check_readable().map_err(|error| error.code()), Err("unreadable"));
    }
    Ok(())
}

#[test]
fn a_copied_file_may_be_truncated() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("copied.nut");
    build(&path)?;
    let snapshot = OpenOptions::new().residency(Residency::HugePages).open(&path)?;
    truncate(&path, 0)?;
    snapshot.verify()?;
    snapshot.check_readable()?;
    Ok(())
}
