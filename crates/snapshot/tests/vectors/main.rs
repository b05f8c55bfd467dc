//! Compares the files of `testdata/snapshot` with the output of the writer, and their JSON with the
//! results of our reader.
//!
//! `NUTHATCH_BLESS=1 cargo test -p nuthatch-snapshot --test vectors` generates the files again.
#![cfg(feature = "zstd")]

mod anatomy;
mod bad;
mod case;
mod good;
mod json;
mod large;
mod tables;

use anatomy::Anatomy;
use bad::FILES;
use case::{Answer, Base, Case, Shows};
use good::{GOOD, Good};
use nuthatch_snapshot::layout::line;
use nuthatch_snapshot::{Error, Result, Scratch, Snapshot};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

type AnyResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/snapshot")
}

fn blessing() -> bool {
    std::env::var_os("NUTHATCH_BLESS").is_some()
}

/// Compares a committed file with its expected contents, or writes it if `NUTHATCH_BLESS` is set.
fn committed(path: &str, contents: &[u8]) -> AnyResult {
    let path = folder().join(path);
    if blessing() {
        std::fs::create_dir_all(path.parent().ok_or("a folder")?)?;
        std::fs::write(&path, contents)?;
    }
    let found = std::fs::read(&path).unwrap_or_default();
    if found != contents {
        let same = found.iter().zip(contents).take_while(|(a, b)| a == b).count();
        let (path, found, expected) = (path.display(), found.len(), contents.len());
        return Err(format!(
            "{path}: {found} bytes, expected {expected}, which differ from byte {same}. If the \
             change is intended, run the test with NUTHATCH_BLESS=1 and add it to the changelog."
        )
        .into());
    }
    Ok(())
}

/// Returns the entries in the order of the file, each as JSON.
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
    if snapshot.stats().shards > 0 {
        writeln!(text, "\"shards\":{},", snapshot.stats().shards)?;
    }
    if !good.metadata.is_empty() {
        writeln!(text, "\"metadata\":{},", json::metadata(&snapshot.metadata()?))?;
    }
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
fn good_files_are_the_output_of_the_writer() -> AnyResult {
    let directory = tempfile::tempdir()?;
    for good in GOOD {
        let path = directory.path().join(good.name);
        good.build(&path)?;
        committed(&format!("v1/{}.nut", good.name), &std::fs::read(&path)?)?;
        let snapshot = Snapshot::open(&path)?;
        snapshot.verify()?;
        committed(&format!("v1/{}.json", good.name), document(good, &snapshot)?.as_bytes())?;
        assert!(snapshot.metadata()?.iter().eq(good.metadata.iter().copied()), "{}", good.name);
        holds_its_rows(good, &snapshot)?;
    }
    for name in shards(directory.path())? {
        committed(&format!("v1/{name}"), &std::fs::read(directory.path().join(name))?)?;
    }
    Ok(())
}

/// Returns the names of the shards in a folder.
fn shards(folder: &Path) -> AnyResult<Vec<String>> {
    let names = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let names: AnyResult<Vec<_>> = names.collect();
    let names = names?.into_iter().map(|name| name.to_string_lossy().into_owned());
    Ok(names
        .filter(|name| Path::new(name).extension().is_some_and(|found| found == "shard"))
        .collect())
}

/// If the writer changes, the files must still have the properties that they are named after.
#[test]
fn good_files_contain_the_rows_that_their_names_describe() -> AnyResult {
    let read = |name: &str| std::fs::read(folder().join(format!("v1/{name}.nut")));
    let stats =
        |name: &str| Snapshot::open(folder().join(format!("v1/{name}.nut"))).map(|s| s.stats());
    assert!(stats("overflow")?.max_probe >= 2);
    assert!(stats("shared")?.shared_entries > 10);
    assert!(stats("zstd")?.compressed_entries > 5 && stats("zstd")?.shared_entries > 0);
    assert_eq!(stats("zstd")?.dictionary_bytes, 0);
    assert!(stats("zstd-dictionary")?.dictionary_bytes > 0);
    let both = stats("shared-compressed")?;
    assert!(both.dictionary_bytes > 0 && both.shared_entries > 10 && both.compressed_entries > 100);
    assert!(stats("partitions")?.partitions >= 4 && stats("partitions")?.shared_entries > 100);
    let large = Anatomy::new(read("large-shift")?);
    assert!(large.lines().any(|at| large.bytes[at + line::SHIFT] > 2));
    let shifted = Anatomy::new(read("shifted")?);
    assert!(shifted.lines().any(|at| shifted.bytes[at + line::SHIFT] > 0));
    let partitions = Anatomy::new(read("entries-20000")?);
    assert_eq!(partitions.partitions(), 2);
    let goes_round = partitions.moved().iter().any(|(home, line, _)| home > line);
    assert!(goes_round, "a key goes from the last line of a partition to its first");
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

/// The result of opening and verifying a file: the error's code and offset.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Open(&'static str, u64),
    Verify(&'static str, u64),
    Good,
}

fn outcome_of(snapshot: &Result<Snapshot>) -> Outcome {
    match snapshot {
        Err(error) => Outcome::Open(error.code(), offset(error)),
        Ok(snapshot) => match snapshot.verify() {
            Err(error) => Outcome::Verify(error.code(), offset(&error)),
            Ok(()) => Outcome::Good,
        },
    }
}

fn offset(error: &Error) -> u64 {
    match error {
        Error::NotASnapshot(d) | Error::Unsupported(d) | Error::Corrupt(d) => d.offset,
        _ => panic!("{error} has no offset"),
    }
}

/// Checks a case with every read operation. Returns the error of verification.
fn check_case(case: &Case, path: &Path) -> AnyResult<Option<u64>> {
    std::fs::write(path, &case.bytes)?;
    let snapshot = Snapshot::open(path);
    let outcome = outcome_of(&snapshot);
    let as_expected = match (&outcome, case.shows) {
        (Outcome::Open(code, at), Shows::Open(expected, place)) => {
            (*code, *at) == (expected, place)
        }
        (Outcome::Verify("corrupt", at), Shows::Verify(place)) => *at == place,
        (Outcome::Verify("corrupt", _), Shows::Somewhere) | (Outcome::Good, Shows::Nowhere) => true,
        _ => false,
    };
    if !as_expected {
        let error = snapshot.and_then(|snapshot| snapshot.verify()).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        return Err(format!("expected {:?}, found {outcome:?} {error}", case.shows).into());
    }
    if let Ok(snapshot) = snapshot {
        look_up(case, &snapshot)?;
    }
    Ok(if let Outcome::Verify(_, at) = outcome { Some(at) } else { None })
}

/// Checks that lookups and iteration end, with results or `corrupt`, and with the right results for
/// a good file.
fn look_up(case: &Case, snapshot: &Snapshot) -> AnyResult {
    let good = Good::named(case.base);
    let mut scratch = Scratch::new();
    let mut answer = |key: &[u8]| -> Result<Option<String>> {
        let Some(stored) = snapshot.find(key)? else { return Ok(None) };
        Ok(Some(json::row(key, &stored.decompress(&mut scratch)?)))
    };
    let mut wrong = Vec::new();
    let mut keys = good.absent();
    good.rows(&mut |key, _| keys.push(key.to_vec()));
    keys.retain(|key| !every_way_agrees(snapshot, key));
    if let Some(key) = keys.first() {
        return Err(format!("ways to look up {} differ", key.escape_ascii()).into());
    }
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

/// Returns whether all lookup methods return the same bytes or the same error.
fn every_way_agrees(snapshot: &Snapshot, key: &[u8]) -> bool {
    let mut one = [None];
    let many = snapshot.find_many(&[key], &mut one).map(|()| one[0]);
    let one = snapshot.find(key);
    let get = snapshot.get(key);
    let typed = [
        snapshot.get_string(key).map(|_| ()),
        snapshot.get_i64_list(key).map(|_| ()),
        snapshot.get_f32_list(key).map(|_| ()),
        snapshot.get_string_list(key).map(|_| ()),
    ];
    let code = |result: &Result<()>| result.as_ref().map_err(Error::code).err();
    let allowed = [None, Some("corrupt"), Some("wrong-type")];
    match (one, many) {
        (Err(one), Err(many)) => one.code() == many.code() && get.is_err(),
        (Ok(one), Ok(many)) => {
            one.map(|found| found.bytes()) == many.map(|found| found.bytes())
                && one.is_some() == !matches!(get, Ok(None))
                && typed.iter().all(|result| allowed.contains(&code(result)))
        }
        _ => false,
    }
}

#[test]
fn damaged_files_give_their_error() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("case.nut");
    let mut bases = HashMap::new();
    for good in GOOD {
        let path = directory.path().join(good.name);
        good.build(&path)?;
        bases.insert(good.name, std::fs::read(&path)?);
    }
    let cases = bad::cases(|name| Base::new(Good::named(name), bases[name].clone()));
    let (mut rows, mut failed, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for case in &cases {
        let looked =
            std::panic::catch_unwind(|| check_case(case, &path).map_err(|e| e.to_string()));
        let verify = match looked.unwrap_or_else(|_| Err("a panic".to_owned())) {
            Ok(verify) => verify,
            Err(problem) => {
                failed.push(format!("{}: {}: {problem}", case.base, case.name));
                continue;
            }
        };
        rows.push(case.to_json(&bases[case.base], verify));
        if let Some((name, ..)) =
            FILES.iter().find(|file| (file.1, file.2) == (case.base, &case.name))
        {
            committed(&format!("bad/{name}.nut"), &case.bytes)?;
            files.push(case.to_json_of_file(&format!("bad/{name}.nut"), verify));
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
    assert_eq!(files.len(), FILES.len(), "every file is of a case");
    rows.extend(files);
    committed("bad/cases.json", format!("[\n{}\n]\n", rows.join(",\n")).as_bytes())
}

#[test]
fn the_folder_has_no_other_files() -> AnyResult {
    if blessing() {
        return Ok(());
    }
    let names = |folder: PathBuf| -> AnyResult<BTreeSet<String>> {
        let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
        entries.map(|name| name.map(|name| name.to_string_lossy().into_owned())).collect()
    };
    let good = GOOD.iter().flat_map(|good| ["nut", "json"].map(|e| format!("{}.{e}", good.name)));
    let directory = tempfile::tempdir()?;
    for good in GOOD {
        good.build(&directory.path().join(good.name))?;
    }
    let good = good.chain(shards(directory.path())?);
    assert_eq!(names(folder().join("v1"))?, good.collect());
    let bad = FILES.iter().map(|file| format!("{}.nut", file.0));
    assert_eq!(names(folder().join("bad"))?, bad.chain(["cases.json".to_owned()]).collect());
    Ok(())
}
