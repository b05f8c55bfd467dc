//! The files of `testdata/snapshot` are what the writer makes, and our reader answers for each of
//! them what its JSON says.
//!
//! `NUTHATCH_BLESS=1 cargo test -p nuthatch-snapshot --test vectors` writes them anew.
#![cfg(feature = "zstd")]

mod good;
mod json;

use good::{GOOD, Good};
use nuthatch_snapshot::{Result, Scratch, Snapshot};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

type AnyResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/snapshot")
}

/// Compares a committed file with what it must be, or writes it when blessing.
fn committed(path: &str, contents: &[u8]) -> AnyResult {
    let path = folder().join(path);
    if std::env::var_os("NUTHATCH_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().ok_or("a folder")?)?;
        std::fs::write(&path, contents)?;
    }
    let found = std::fs::read(&path).unwrap_or_default();
    if found != contents {
        let same = found.iter().zip(contents).take_while(|(a, b)| a == b).count();
        let (path, found, expected) = (path.display(), found.len(), contents.len());
        return Err(format!(
            "{path}: {found} bytes, should be {expected}, and differ from byte {same} on. If the \
             change is meant, run the test with NUTHATCH_BLESS=1 and say so in the change log."
        )
        .into());
    }
    Ok(())
}

/// The entries in the order of the file, each as JSON.
fn dump(snapshot: &Snapshot) -> Result<Vec<String>> {
    let mut scratch = Scratch::new();
    let rows = snapshot.iter().map(|entry| {
        let entry = entry?;
        Ok(json::row(entry.key, &entry.value.decompress(&mut scratch)?))
    });
    rows.collect()
}

fn document(good: &Good, snapshot: &Snapshot) -> AnyResult<String> {
    let mut text = format!("{{\"stats\":{},\n", json::stats(&snapshot.stats()));
    write!(text, "\"absent\":{},\n\"entries\":[", json::list(absent_as_json(good)))?;
    for (i, row) in dump(snapshot)?.iter().enumerate() {
        write!(text, "{}\n{row}", if i == 0 { "" } else { "," })?;
    }
    text.push_str("\n]}\n");
    Ok(text)
}

fn absent_as_json(good: &Good) -> impl Iterator<Item = String> {
    good.absent().into_iter().map(|key| json::key(&key))
}

#[test]
fn good_files_are_what_the_writer_makes() -> AnyResult {
    let directory = tempfile::tempdir()?;
    for good in GOOD {
        let path = directory.path().join(good.name);
        good.build(&path)?;
        committed(&format!("v1/{}.nut", good.name), &std::fs::read(&path)?)?;
        let snapshot = Snapshot::open(&path)?;
        snapshot.verify()?;
        committed(&format!("v1/{}.json", good.name), document(good, &snapshot)?.as_bytes())?;
        holds_its_rows(good, &snapshot)?;
    }
    Ok(())
}

fn holds_its_rows(good: &Good, snapshot: &Snapshot) -> AnyResult {
    let mut scratch = Scratch::new();
    let mut rows = Vec::new();
    good.rows(&mut |key, value| {
        let row = json::row(key, &value);
        let found = snapshot.find(key).expect("no damage").expect("a key that is there");
        let found = found.decompress(&mut scratch).expect("no damage");
        assert_eq!(json::row(key, &found), row, "{}", good.name);
        rows.push(row);
    });
    rows.sort();
    let mut dumped = dump(snapshot)?;
    dumped.sort();
    assert!(rows == dumped, "{}: iteration gives every row once", good.name);
    for key in good.absent() {
        assert!(!snapshot.contains(&key)?, "{}: {}", good.name, key.escape_ascii());
    }
    Ok(())
}
