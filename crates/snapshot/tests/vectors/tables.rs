//! The tables of lookups that every reader must answer in the same way: hashes of keys, typed
//! lookups, and switches of a watch.

use crate::{AnyResult, committed, folder, json};
use nuthatch_snapshot::{Error, Result, Snapshot, Value, ValueType, WatchOptions};
use std::fmt::Write as _;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Seeds of the table of hashes. The last one is that of the file `seed`.
const SEEDS: [u64; 4] = [0, 1, 0x8000_0000_0000_0000, 0xfedc_ba98_7654_3210];

/// Lengths at which the hash function takes another branch, and some between.
const LENGTHS: [usize; 28] = [
    0, 1, 2, 3, 4, 5, 8, 9, 12, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 143, 144, 239, 240, 241,
    256, 257, 1024, 1025,
];

#[test]
fn hashes_of_keys_with_seeds() -> AnyResult {
    let mut rows = Vec::new();
    for seed in SEEDS {
        for len in LENGTHS {
            let key: Vec<u8> = (0..len).map(|i| b'a' + (i * 11 % 26) as u8).collect();
            rows.push(format!(
                "{{\"name\":\"hash: {len} bytes, seed {seed:x}\",\"key\":{},\
                 \"seed\":\"{seed:016x}\",\"hash\":\"{:016x}\"}}",
                json::key(&key),
                xxh3_64_with_seed(&key, seed)
            ));
        }
    }
    committed("hashes.json", format!("[\n{}\n]\n", rows.join(",\n")).as_bytes())
}

/// Files and keys of the table of typed lookups: a value of each type, one of a shard, compressed
/// ones, shared ones, and a key that does not exist.
const TYPED: &[(&str, &[&str])] = &[
    (
        "types",
        &[
            "bytes",
            "string",
            "bool: true",
            "i64: least",
            "f64: -0",
            "list of i64",
            "list of f64",
            "list of f32",
            "list of string",
            "list of nothing",
            "absent 0",
        ],
    ),
    ("set-3", &["string", "i64: least", "list of f32", "list of nothing", "absent 0"]),
    (
        "zstd",
        &["string 10", "bytes", "list of i64", "list of f64", "list of f32", "list of string"],
    ),
    ("shared-compressed", &["text 0", "text 1"]),
    ("shared", &["list of f32 1", "string 5"]),
];

/// A typed lookup, which returns the value in the form of the tables.
type Lookup = fn(&Snapshot, &[u8]) -> Result<Option<String>>;

/// The typed lookups, by the name of their type.
const LOOKUPS: [(ValueType, Lookup); 9] = [
    (ValueType::Bytes, |s, key| Ok(s.get_bytes(key)?.map(|v| json::value(&Value::Bytes(&v))))),
    (ValueType::String, |s, key| Ok(s.get_string(key)?.map(|v| json::value(&Value::String(&v))))),
    (ValueType::Bool, |s, key| Ok(s.get_bool(key)?.map(|v| json::value(&Value::Bool(v))))),
    (ValueType::I64, |s, key| Ok(s.get_i64(key)?.map(|v| json::value(&Value::I64(v))))),
    (ValueType::F64, |s, key| Ok(s.get_f64(key)?.map(|v| json::value(&Value::F64(v))))),
    (ValueType::I64List, |s, key| {
        Ok(s.get_i64_list(key)?.map(|v| json::value(&Value::I64List(&v))))
    }),
    (ValueType::F64List, |s, key| {
        Ok(s.get_f64_list(key)?.map(|v| json::value(&Value::F64List(&v))))
    }),
    (ValueType::F32List, |s, key| {
        let Some(list) = s.get_f32_list(key)? else { return Ok(None) };
        let value = if list.is_empty() { Value::EmptyList } else { Value::F32List(&list) };
        Ok(Some(json::value(&value)))
    }),
    (ValueType::StringList, |s, key| {
        Ok(s.get_string_list(key)?.map(|v| json::value(&Value::StringList(v.as_list()))))
    }),
];

#[test]
fn typed_lookups_return_the_value_or_its_type() -> AnyResult {
    let mut rows = Vec::new();
    for (file, keys) in TYPED {
        let snapshot = Snapshot::open(folder().join(format!("v1/{file}.nut")))?;
        for (key, (value_type, look_up)) in
            keys.iter().flat_map(|key| LOOKUPS.iter().map(move |lookup| (key, lookup)))
        {
            let name = value_type.name();
            let mut row = format!("{{\"name\":\"{file}: {key} as {name}\"");
            let key_json = json::key(key.as_bytes());
            write!(row, ",\"file\":\"v1/{file}.nut\",\"key\":{key_json},\"as\":\"{name}\"")?;
            match look_up(&snapshot, key.as_bytes()) {
                Ok(Some(value)) => write!(row, ",\"value\":{value}}}")?,
                Ok(None) => write!(row, ",\"absent\":true}}")?,
                Err(Error::WrongType { found, .. }) => {
                    write!(row, ",\"found\":\"{}\"}}", found.name())?;
                }
                Err(error) => return Err(error.into()),
            }
            rows.push(row);
        }
    }
    committed("typed.json", format!("[\n{}\n]\n", rows.join(",\n")).as_bytes())
}

/// A step of a case of a watch: what happens to the watched path before the refresh.
enum Step {
    /// This file is published: copied, and renamed over the path.
    Publish(&'static str),
    /// The file at the path is removed.
    Remove,
    /// Nothing happens.
    Wait,
}

use Step::{Publish, Remove, Wait};

/// Cases of a watch: name, whether it verifies, and steps. The first step publishes the first file.
const WATCHES: &[(&str, bool, &[Step])] = &[
    ("a file is replaced", false, &[Publish("v1/one.nut"), Publish("v1/types.nut"), Wait]),
    ("a file is replaced by an equal one", false, &[Publish("v1/one.nut"), Publish("v1/one.nut")]),
    (
        "a damaged file is not used",
        false,
        &[
            Publish("v1/one.nut"),
            Publish("bad/header-checksum.nut"),
            Wait,
            Publish("bad/other-magic.nut"),
            Publish("v1/entries-14.nut"),
        ],
    ),
    (
        "a file of a newer version is not used",
        false,
        &[Publish("v1/one.nut"), Publish("bad/newer-major-version.nut"), Publish("v1/one.nut")],
    ),
    (
        "damage that only verification finds, without verification",
        false,
        &[Publish("v1/one.nut"), Publish("bad/index-checksum.nut")],
    ),
    (
        "damage that only verification finds",
        true,
        &[Publish("v1/one.nut"), Publish("bad/index-checksum.nut"), Publish("v1/entries-15.nut")],
    ),
    (
        "a removed file stays in use until another one is published",
        false,
        &[Publish("v1/one.nut"), Remove, Wait, Publish("v1/types.nut")],
    ),
    (
        "a file is replaced by a set, and the set by another one",
        false,
        &[
            Publish("v1/one.nut"),
            Publish("v1/set-3.nut"),
            Publish("v1/set-7.nut"),
            Wait,
            Publish("v1/one.nut"),
        ],
    ),
];

#[test]
fn watches_switch_as_the_table_says() -> AnyResult {
    let mut rows = Vec::new();
    for (name, verify, steps) in WATCHES {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("watched.nut");
        let mut watch = None;
        let mut current = "";
        let mut lines = Vec::new();
        for step in *steps {
            let change = match step {
                Publish(file) => {
                    publish(file, &path)?;
                    format!("\"publish\":\"{file}\"")
                }
                Remove => {
                    std::fs::remove_file(&path)?;
                    "\"remove\":true".to_owned()
                }
                Wait => "\"wait\":true".to_owned(),
            };
            let switched = if let Some(watch) = &watch {
                nuthatch_snapshot::Watch::refresh(watch)
            } else {
                let options = WatchOptions::new().verify(*verify);
                watch = Some(options.interval(std::time::Duration::ZERO).path(&path)?);
                true
            };
            if let (true, Publish(file)) = (switched, step) {
                current = file;
            }
            let watch = watch.as_ref().ok_or("a watch")?;
            let status = watch.status();
            let entries = watch.reader().current().len();
            lines.push(format!(
                "  {{{change},\"current\":\"{current}\",\"entries\":{entries},\"switched\":{},\
                 \"rejected\":{},\"error\":{}}}",
                status.switched,
                status.rejected,
                status.error.is_some()
            ));
        }
        rows.push(format!(
            "{{\"name\":\"watch: {name}\",\"verify\":{verify},\"steps\":[\n{}]}}",
            lines.join(",\n")
        ));
    }
    committed("watch.json", format!("[\n{}\n]\n", rows.join(",\n")).as_bytes())
}

/// Copies a file of the folder, and all shards, beside the path, and renames the file to it.
fn publish(file: &str, path: &Path) -> AnyResult {
    let beside = path.parent().ok_or("a folder")?;
    for name in crate::shards(&folder().join("v1"))? {
        std::fs::copy(folder().join("v1").join(&name), beside.join(&name))?;
    }
    let temporary = beside.join("published.tmp");
    std::fs::copy(folder().join(file), &temporary)?;
    std::fs::rename(&temporary, path)?;
    Ok(())
}
