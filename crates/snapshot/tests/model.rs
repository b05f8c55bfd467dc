//! Property tests: for arbitrary rows and options, all read operations agree with a map in memory.
#![cfg(feature = "zstd")]

mod rows;

use nuthatch_snapshot::{
    Compression, CowStringList, CowValue, Error, OnDuplicate, OwnedValue, Scratch, Snapshot, Stats,
    StringList, Value, ValueType, WriterOptions,
};
use proptest::collection::vec;
use proptest::prelude::*;
use rows::{Owned, Row, any_key, any_value, build};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

type Model = BTreeMap<Vec<u8>, Owned>;

/// Shorter values are never shared.
const SHARE_MIN: usize = 32;

/// The input of a test: rows, options, keys to look up.
#[derive(Clone, Debug)]
struct Case {
    rows: Vec<Row>,
    policy: OnDuplicate,
    compression: Compression,
    threads: (usize, usize),
    spills: bool,
    seed: u64,
    /// Keys to look up besides those of the rows.
    others: Vec<Vec<u8>>,
    batch: usize,
}

impl Case {
    fn options(&self) -> WriterOptions {
        let options = WriterOptions::new()
            .on_duplicate(self.policy)
            .compression(self.compression)
            .seed(self.seed);
        if self.spills { options.memory(16 << 20) } else { options }
    }

    /// Returns the expected entries, or the positions of the earliest duplicate.
    fn model(&self) -> Result<Model, (u64, u64)> {
        let mut model = Model::new();
        let mut seen: HashMap<&[u8], u64> = HashMap::new();
        for (origin, (key, value)) in (0..).zip(&self.rows) {
            match (seen.insert(key, origin), self.policy) {
                (Some(first), OnDuplicate::Error) => return Err((first, origin)),
                (Some(_), OnDuplicate::First) => {}
                _ => drop(model.insert(key.clone(), value.clone())),
            }
        }
        Ok(model)
    }

    /// Returns the rows in another order that keeps the order of rows with the same key.
    fn shuffled(&self) -> Vec<Row> {
        let place = |key: &[u8]| {
            let mut hasher = DefaultHasher::new();
            (self.batch, key).hash(&mut hasher);
            hasher.finish()
        };
        let mut rows = self.rows.clone();
        rows.sort_by_cached_key(|(key, _)| place(key));
        rows
    }
}

fn any_compression() -> impl Strategy<Value = Compression> {
    prop_oneof![
        3 => Just(Compression::None),
        1 => (1..4).prop_map(|level| Compression::Zstd { level }),
    ]
}

/// Generates rows, each copied with numbered keys to make the file large.
fn any_rows(most: usize, copies: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Row>> {
    (vec((any_key(), any_value()), 0..most), copies).prop_map(|(drawn, copies)| {
        let mut rows = drawn.clone();
        for copy in 1..copies {
            rows.extend(
                drawn
                    .iter()
                    .map(|(key, value)| {
                        let number = copy.to_string();
                        (
                            [&number.as_bytes()[number.len() / 2..], key, number.as_bytes()]
                                .concat(),
                            value,
                        )
                    })
                    .map(|(key, value)| (key, value.clone())),
            );
        }
        rows
    })
}

fn any_case(most: usize, copies: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    let policy = prop_oneof![
        1 => Just(OnDuplicate::Error),
        2 => Just(OnDuplicate::First),
        2 => Just(OnDuplicate::Last),
    ];
    let build = (policy, any_compression(), (1..5_usize, 1..5_usize), any::<bool>(), any::<u64>());
    let ask = (vec(any_key(), 0..20), 1..200_usize);
    (any_rows(most, copies), build, ask).prop_map(|(rows, build, (others, batch))| {
        let (policy, compression, threads, spills, seed) = build;
        Case { rows, policy, compression, threads, spills, seed, others, batch }
    })
}

/// Returns a configuration with few cases, unless `PROPTEST_CASES` is set.
fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if asked { default } else { ProptestConfig { cases, ..default } }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn small_snapshots_hold_what_a_map_holds(case in any_case(60, 1..4)) {
        check(&case).expect("no error");
    }
}

proptest! {
    #![proptest_config(config(30))]

    #[test]
    fn large_snapshots_hold_what_a_map_holds(case in any_case(120, 100..400)) {
        check(&case).expect("no error");
    }
}

fn check(case: &Case) -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("case.nut");
    let options = case.options();
    let built = build(&path, &options.clone().threads(case.threads.0), &case.rows);
    let model = match (case.model(), built) {
        (Ok(model), Ok(summary)) => {
            assert_eq!(summary.rows, case.rows.len() as u64);
            assert_eq!(summary.entries, model.len() as u64);
            model
        }
        (Err((first, second)), Err(Error::Duplicate(found))) => {
            assert_eq!((found.first, found.second), (first, second));
            assert_eq!(found.key, case.rows[second as usize].0);
            assert_eq!(std::fs::read_dir(directory.path())?.count(), 0, "files are left");
            return Ok(());
        }
        (model, built) => panic!("{:?} entries expected, built {built:?}", model.map(|m| m.len())),
    };
    let snapshot = Snapshot::open(&path)?;
    snapshot.verify()?;
    check_stats(&snapshot.stats(), case, &model);
    check_entries(&snapshot, &model)?;
    check_many(&snapshot, &model, case)?;
    check_iteration(&snapshot, &model)?;
    for key in case.others.iter().filter(|key| !model.contains_key(&key[..])) {
        check_absent(&snapshot, key)?;
    }
    let other = directory.path().join("other.nut");
    build(&other, &options.threads(case.threads.1), &case.shuffled())?;
    let same = std::fs::read(&path)? == std::fs::read(&other)?;
    assert!(same, "another order or number of threads gives other bytes");
    Ok(())
}

fn check_stats(stats: &Stats, case: &Case, model: &Model) {
    assert_eq!(stats.entries, model.len() as u64);
    assert_eq!(stats.seed, case.seed);
    assert_eq!(stats.key_bytes, model.keys().map(|key| key.len() as u64).sum::<u64>());
    let lens = model.values().map(|value| value.bytes().len() as u64);
    assert_eq!(stats.value_bytes, lens.sum::<u64>());
    for value_type in ValueType::ALL {
        let count = model.values().filter(|value| value.value_type() == value_type).count();
        assert_eq!(stats.entries_of(value_type), count as u64);
    }
    let mut stored = 0;
    let mut distinct = HashSet::new();
    let mut shared = 0;
    for value in model.values() {
        let bytes = value.bytes();
        let len = bytes.len();
        if len < SHARE_MIN || distinct.insert((value.value_type(), bytes)) {
            stored += len as u64;
        } else {
            shared += 1;
        }
    }
    assert_eq!(stats.shared_entries, shared);
    if case.compression == Compression::None {
        assert_eq!(stats.stored_value_bytes, stored);
        assert_eq!(stats.compressed_entries, 0);
    } else {
        assert!(stats.stored_value_bytes <= stored);
    }
}

fn check_entries(snapshot: &Snapshot, model: &Model) -> nuthatch_snapshot::Result<()> {
    let mut scratch = Scratch::new();
    for (key, value) in model {
        let name = key.escape_ascii();
        let Some(found) = snapshot.find(key)? else { panic!("{name} is missing") };
        assert!(value.is(found.decompress(&mut scratch)?), "{name}: {found:?} is not {value:?}");
        assert!(found.value_type() == value.value_type(), "{name}: {found:?}");
        assert!(snapshot.contains(key)?, "{name} is missing");
        assert!(snapshot.value_type(key)? == Some(value.value_type()), "{name}: another type");
        let Some(got) = snapshot.get(key)? else { panic!("{name} is missing") };
        assert!(value.is(got.as_value()), "{name}: {got:?}");
        let is_owned = matches!(got, CowValue::Owned(_));
        assert_eq!(is_owned, found.is_compressed(), "{name}");
        assert_eq!(found.in_place()?.is_none(), is_owned, "{name}");
        for asked in ValueType::ALL {
            let right = assert_typed_lookup(snapshot, key, value, asked);
            assert!(right, "{name}: {found:?} read as {asked}");
        }
    }
    Ok(())
}

/// Looks up a key with the typed lookup of a type.
fn get_typed(
    snapshot: &Snapshot,
    key: &[u8],
    asked: ValueType,
) -> Option<nuthatch_snapshot::Result<Option<OwnedValue>>> {
    macro_rules! owned {
        ($answer:expr, $read:expr) => {
            $answer.map(|found| found.as_ref().map(|value| OwnedValue::from(($read)(value))))
        };
    }
    Some(match asked {
        ValueType::Bytes => owned!(snapshot.get_bytes(key), Value::Bytes),
        ValueType::String => owned!(snapshot.get_string(key), Value::String),
        ValueType::Bool => owned!(snapshot.get_bool(key), |v: &bool| Value::Bool(*v)),
        ValueType::I64 => owned!(snapshot.get_i64(key), |v: &i64| Value::I64(*v)),
        ValueType::F64 => owned!(snapshot.get_f64(key), |v: &f64| Value::F64(*v)),
        ValueType::I64List => owned!(snapshot.get_i64_list(key), Value::I64List),
        ValueType::F64List => owned!(snapshot.get_f64_list(key), Value::F64List),
        ValueType::F32List => owned!(snapshot.get_f32_list(key), Value::F32List),
        ValueType::StringList => {
            owned!(snapshot.get_string_list(key), |v: &CowStringList<'_>| {
                OwnedValue::from(Value::StringList(v.as_list()))
            })
        }
        _ => return None,
    })
}

fn assert_typed_lookup(snapshot: &Snapshot, key: &[u8], value: &Owned, asked: ValueType) -> bool {
    let Some(answer) = get_typed(snapshot, key, asked) else { return true };
    let stored = value.value_type();
    let empty_list = match asked {
        ValueType::I64List => Some(Value::I64List(&[])),
        ValueType::F64List => Some(Value::F64List(&[])),
        ValueType::F32List => Some(Value::F32List(&[])),
        ValueType::StringList => Some(Value::StringList(StringList::default())),
        _ => None,
    };
    match answer {
        Ok(Some(answer)) if stored == asked => value.is(answer.as_value()),
        Ok(Some(answer)) => stored == ValueType::EmptyList && empty_list == Some(answer.as_value()),
        Err(Error::WrongType { requested: named, found: other }) => {
            let list = stored == ValueType::EmptyList && empty_list.is_some();
            named == asked && other == stored && stored != asked && !list
        }
        Ok(None) | Err(_) => false,
    }
}

fn check_absent(snapshot: &Snapshot, key: &[u8]) -> nuthatch_snapshot::Result<()> {
    let name = key.escape_ascii();
    assert!(snapshot.get(key)?.is_none(), "{name} is there");
    assert!(snapshot.find(key)?.is_none(), "{name} is there");
    assert!(!snapshot.contains(key)?, "{name} is there");
    assert!(snapshot.value_type(key)?.is_none(), "{name} is there");
    for asked in ValueType::ALL {
        if let Some(answer) = get_typed(snapshot, key, asked) {
            assert!(answer?.is_none(), "{name} is there as {asked}");
        }
    }
    Ok(())
}

/// Compares batches of present, absent and repeated keys with single lookups.
fn check_many(snapshot: &Snapshot, model: &Model, case: &Case) -> nuthatch_snapshot::Result<()> {
    let mut keys: Vec<&[u8]> = Vec::new();
    for (number, key) in model.keys().enumerate() {
        keys.push(key);
        if let Some(other) = case.others.get(number % 50) {
            keys.push(other);
        }
        if number % 3 == 0 {
            keys.push(keys[number / 2]);
        }
    }
    keys.extend(case.others.iter().map(|key| &key[..]));
    let mut scratch = Scratch::new();
    for keys in keys.chunks(case.batch) {
        let mut found = vec![None; keys.len() + case.batch % 2];
        snapshot.find_many(keys, &mut found)?;
        for (key, found) in keys.iter().zip(&found) {
            let name = key.escape_ascii();
            let right = match (model.get(*key), found) {
                (Some(value), Some(found)) => value.is(found.decompress(&mut scratch)?),
                (None, None) => true,
                _ => false,
            };
            assert!(right, "{name} among many: {found:?}");
        }
        let mut values = vec![Some(CowValue::from(Value::Bool(true))); keys.len()];
        snapshot.get_many(keys, &mut values)?;
        for (key, got) in keys.iter().zip(&values) {
            let name = key.escape_ascii();
            let got = got.as_ref().map(CowValue::as_value);
            let right = model.get(*key).map(|value| got.is_some_and(|got| value.is(got)));
            assert!(right.unwrap_or(got.is_none()), "{name} among many: {got:?}");
        }
    }
    Ok(())
}

fn check_iteration(snapshot: &Snapshot, model: &Model) -> nuthatch_snapshot::Result<()> {
    let mut scratch = Scratch::new();
    let mut seen = HashSet::new();
    for entry in snapshot {
        let entry = entry?;
        let name = entry.key.escape_ascii();
        let Some(value) = model.get(entry.key) else { panic!("{name} was not given") };
        assert!(value.is(entry.value.decompress(&mut scratch)?), "{name} iterated: {entry:?}");
        assert!(seen.insert(entry.key), "{name} comes twice");
    }
    assert!(seen.len() == model.len(), "{} entries of {}", seen.len(), model.len());
    Ok(())
}
