//! The files of `testdata/snapshot` are what the writer makes, and our reader answers for each of
//! them what its JSON says.
//!
//! `NUTHATCH_BLESS=1 cargo test -p nuthatch-snapshot --test vectors` writes them anew.
#![cfg(feature = "zstd")]

mod anatomy;
mod bad;
mod case;
mod good;
mod json;

use case::{Answer, Base, Case, Shows};
use good::{GOOD, Good};
use nuthatch_snapshot::{Error, Result, Scratch, Snapshot};
use std::collections::HashMap;
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

/// What a reader says of a file: at opening, or at verification.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Open(&'static str, u64),
    Verify(&'static str, u64),
    Good,
}

fn said(snapshot: &Result<Snapshot>) -> Said {
    match snapshot {
        Err(error) => Said::Open(error.code(), offset(error)),
        Ok(snapshot) => match snapshot.verify() {
            Err(error) => Said::Verify(error.code(), offset(&error)),
            Ok(()) => Said::Good,
        },
    }
}

fn offset(error: &Error) -> u64 {
    match error {
        Error::NotASnapshot(d) | Error::Unsupported(d) | Error::Corrupt(d) => d.offset,
        _ => panic!("{error} has no offset"),
    }
}

/// Looks at a case by every way to read; answers where verification fails.
fn look(case: &Case, path: &Path) -> AnyResult<Option<u64>> {
    std::fs::write(path, &case.bytes)?;
    let snapshot = Snapshot::open(path);
    let said = said(&snapshot);
    let as_expected = match (&said, case.shows) {
        (Said::Open(code, at), Shows::Open(expected, place)) => (*code, *at) == (expected, place),
        (Said::Verify("corrupt", at), Shows::Verify(place)) => *at == place,
        (Said::Verify("corrupt", _), Shows::Somewhere) | (Said::Good, Shows::Nowhere) => true,
        _ => false,
    };
    if !as_expected {
        let error = snapshot.and_then(|snapshot| snapshot.verify()).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        return Err(format!("expected {:?}, found {said:?} {error}", case.shows).into());
    }
    if let Ok(snapshot) = snapshot {
        look_up(case, &snapshot)?;
    }
    Ok(if let Said::Verify(_, at) = said { Some(at) } else { None })
}

/// Lookups and iteration end, with answers or `corrupt`; the right ones where the file is good.
fn look_up(case: &Case, snapshot: &Snapshot) -> AnyResult {
    let good = Good::named(case.base);
    let mut scratch = Scratch::new();
    let mut answer = |key: &[u8]| -> Result<Option<String>> {
        let Some(stored) = snapshot.find(key)? else { return Ok(None) };
        Ok(Some(json::row(key, &stored.decompress(&mut scratch)?)))
    };
    let mut wrong = Vec::new();
    let mut check = |key: &[u8], expected: Option<String>| {
        let right = match answer(key) {
            Ok(found) => case.shows != Shows::Nowhere || found == expected,
            Err(error) => case.shows != Shows::Nowhere && error.code() == "corrupt",
        };
        if !right {
            wrong.push(key.escape_ascii().to_string());
        }
    };
    good.rows(&mut |key, value| check(key, Some(json::row(key, &value))));
    good.absent().iter().for_each(|key| check(key, None));
    if !wrong.is_empty() {
        return Err(format!("wrong answers for {wrong:?}").into());
    }
    let dumped = dump(snapshot);
    if let Some((key, expected)) = &case.get {
        let found = match answer(key) {
            Ok(None) => "absent",
            Ok(Some(_)) => "a value",
            Err(error) => error.code(),
        };
        if found != expected.name() {
            return Err(format!("a lookup should give {expected:?} and gives {found}").into());
        }
        if *expected == Answer::Corrupt && dumped.is_ok() {
            return Err("iteration passes by what a lookup finds corrupt".into());
        }
    }
    Ok(())
}

#[test]
fn damaged_files_give_their_error() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("case.nut");
    let bases: HashMap<&str, Vec<u8>> = GOOD
        .iter()
        .map(|good| {
            good.build(&path)?;
            Ok((good.name, std::fs::read(&path)?))
        })
        .collect::<AnyResult<_>>()?;
    let cases = bad::cases(|name| Base::new(Good::named(name), bases[name].clone()));
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for case in &cases {
        let looked = std::panic::catch_unwind(|| look(case, &path).map_err(|e| e.to_string()));
        match looked.unwrap_or_else(|_| Err("panicked".to_owned())) {
            Err(problem) => failed.push(format!("{}: {}: {problem}", case.base, case.name)),
            Ok(verify) => rows.push(case.to_json(&bases[case.base], verify)),
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
    committed("bad/cases.json", format!("[\n{}\n]\n", rows.join(",\n")).as_bytes())
}
