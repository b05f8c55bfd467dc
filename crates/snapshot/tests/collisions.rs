//! Keys with colliding hashes: all are found, or the build fails with a limit.

use nuthatch_snapshot::layout::{limits, line};
use nuthatch_snapshot::{Error, Snapshot, Value, WriterOptions};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const SEED: u64 = 11;

fn hash(key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, SEED)
}

/// Returns the home line of a key in an index of `lines` lines.
fn home(key: &[u8], lines: u64) -> u64 {
    ((u128::from(hash(key)) * u128::from(lines)) >> 64) as u64
}

fn numbered(prefix: &'static str) -> impl Iterator<Item = Vec<u8>> {
    (0_u64..).map(move |number| format!("{prefix}{number}").into_bytes())
}

/// Builds a snapshot in which the value of each key is its index.
fn build(path: &Path, options: &WriterOptions, keys: &[Vec<u8>]) -> nuthatch_snapshot::Result<()> {
    let mut writer = options.create(path)?;
    for (number, key) in (0..).zip(keys) {
        writer.insert(key, Value::I64(number))?;
    }
    writer.finish()?;
    Ok(())
}

/// Builds a snapshot, and checks all keys and some absent ones by all lookup methods.
fn check(
    path: &Path,
    options: &WriterOptions,
    keys: &[Vec<u8>],
    absent: &[Vec<u8>],
) -> AnyResult<Snapshot> {
    build(path, options, keys)?;
    let snapshot = Snapshot::open(path)?;
    snapshot.verify()?;
    let all: Vec<_> = keys.iter().chain(absent).collect();
    let mut found = vec![None; all.len()];
    snapshot.get_many(&all, &mut found)?;
    let numbers = (0..).map(Some).take(keys.len()).chain(std::iter::repeat(None));
    for ((number, key), found) in numbers.zip(&all).zip(found) {
        assert_eq!(found, number.map(|number| Value::I64(number).into()), "{}", key.escape_ascii());
        assert_eq!(snapshot.get_i64(key)?, number, "{}", key.escape_ascii());
        assert_eq!(snapshot.contains(key)?, number.is_some(), "{}", key.escape_ascii());
    }
    assert_eq!(snapshot.iter().count(), keys.len());
    Ok(snapshot)
}

/// Many keys have the same home line: at the start of a partition, in the middle, and at the end,
/// from which they are moved to the start.
#[test]
fn four_hundred_keys_of_one_line_are_found() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("one line.nut");
    let options = WriterOptions::new().seed(SEED);
    let others: Vec<_> = numbered("other ").take(5000).collect();
    let lines = 5400_u64.div_ceil(9);
    for chosen in [0, 300, lines - 1] {
        let of_line = |key: &Vec<u8>| home(key, lines) == chosen;
        let colliding = numbered("chosen ").filter(of_line).take(400);
        let keys: Vec<_> = colliding.chain(others.clone()).collect();
        // Absent keys whose home lines are those that the chosen keys fill, and neighbouring ones.
        let near = |key: &Vec<u8>| (home(key, lines) + lines - chosen + 2) % lines < 40;
        let absent: Vec<_> = numbered("absent ").filter(near).take(2000).collect();
        let snapshot = check(&path, &options, &keys, &absent)?;
        assert_eq!(snapshot.stats().lines, lines, "the lines that the keys were chosen for");
        assert!(snapshot.stats().max_probe as usize > 400 / line::SLOTS);
    }
    Ok(())
}

#[test]
fn more_keys_than_a_probe_reaches_fail_and_another_seed_succeeds() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("refused.nut");
    let count = 4500;
    let lines = u64::from(count as u32).div_ceil(9);
    let keys: Vec<_> = numbered("").filter(|key| home(key, lines) == 123).take(count).collect();
    let options = WriterOptions::new().seed(SEED);
    let Err(Error::Limit(limit)) = build(&path, &options, &keys) else { panic!("a limit") };
    assert_eq!(limit.max, u64::from(limits::MAX_PROBE));
    assert!(limit.what.contains("seed"), "{limit:?}");
    assert_eq!(std::fs::read_dir(directory.path())?.count(), 0, "nothing is left");
    check(&path, &options.seed(SEED + 1), &keys, &[])?;
    Ok(())
}

/// With eight partitions, one would have more keys than slots.
#[test]
fn too_many_keys_of_one_partition_make_fewer_partitions() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("partitions.nut");
    let chosen = numbered("chosen ").filter(|key| hash(key) >> 61 == 5).take(5000);
    let keys: Vec<_> = chosen.chain(numbered("other ").take(75_000)).collect();
    let options = WriterOptions::new().seed(SEED);
    let snapshot = check(&path, &options.clone().threads(1), &keys, &[])?;
    assert_eq!(snapshot.stats().partitions, 4);
    let bytes = std::fs::read(&path)?;
    check(&path, &options.clone().threads(3), &keys, &[])?;
    assert!(std::fs::read(&path)? == bytes);
    let others: Vec<_> = numbered("other ").take(80_000).collect();
    assert_eq!(check(&path, &options, &others, &[])?.stats().partitions, 8);
    Ok(())
}

/// Returns two keys of 16 bytes with the same 64-bit hash, for every number. The hash of such keys
/// multiplies their halves. If one half is zero, the hash depends on the sum of the halves only.
fn twins(number: u64) -> [Vec<u8>; 2] {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // From bytes 24 to 56 of the constants of XXH3.
    let first = (0x1f67_b3b7_a4a4_4072 ^ 0x78e5_c0cc_4ee6_79cb_u64).wrapping_add(SEED);
    let second = (0x2172_ffcc_7dd0_5a82 ^ 0x8e24_43f7_7446_08b8_u64).wrapping_sub(SEED);
    let halves = [(first, number ^ second), (number.swap_bytes() ^ first, second)];
    halves.map(|(low, high)| [low.to_le_bytes(), high.to_le_bytes()].concat())
}

#[test]
fn keys_with_the_same_hash_are_distinguished() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("twins.nut");
    let pairs: Vec<_> = (1..3000).map(twins).collect();
    assert!(pairs.iter().all(|[one, other]| one != other && hash(one) == hash(other)));
    let options = WriterOptions::new().seed(SEED);
    let both: Vec<_> = pairs.iter().flatten().cloned().collect();
    let mut expected = None;
    for options in [options.clone().threads(1), options.clone().threads(3)] {
        check(&path, &options, &both, &[])?;
        let bytes = std::fs::read(&path)?;
        assert!(*expected.get_or_insert_with(|| bytes.clone()) == bytes);
    }
    let (present, absent): (Vec<_>, Vec<_>) = pairs.into_iter().map(Into::into).unzip();
    check(&path, &options, &present, &absent)?;
    check(&path, &options, &absent, &present)?;
    Ok(())
}

/// The first entry with a value stores it. Here the first two have the same hash.
#[test]
fn keys_with_the_same_hash_and_the_same_value_are_distinguished() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("values.nut");
    let mut writer = WriterOptions::new().seed(SEED).create(&path)?;
    let value = |number: u64| format!("a value long enough to be shared, {}", number % 7);
    let keys = (1..500).flat_map(|n| {
        let [one, other] = twins(n);
        [(one, value(n)), (other, value(n)), (n.to_le_bytes().to_vec(), value(n))]
    });
    let keys: Vec<_> = keys.collect();
    for (key, value) in &keys {
        writer.insert(key, Value::String(value))?;
    }
    writer.finish()?;
    let snapshot = Snapshot::open(&path)?;
    snapshot.verify()?;
    for (key, value) in &keys {
        assert_eq!(snapshot.get_string(key)?.as_deref(), Some(&value[..]));
    }
    Ok(())
}
