//! Builds snapshots of arbitrary rows with arbitrary options. All rows are read back, and the
//! number of threads does not change the file.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use nuthatch_fuzz::read_all;
use nuthatch_snapshot::{
    Compression, OnDuplicate, Scratch, Snapshot, StringListBuf, Value, WriterOptions,
};
use std::collections::HashMap;
use std::path::Path;

#[derive(Arbitrary, Debug)]
enum Any {
    Bytes(Vec<u8>),
    String(String),
    Bool(bool),
    I64(i64),
    F64(f64),
    I64List(Vec<i64>),
    F64List(Vec<f64>),
    F32List(Vec<f32>),
    StringList(Vec<String>),
    /// A repeated byte, which yields long compressible values.
    Run(u8, u16),
}

impl Any {
    fn with<R>(&self, f: impl FnOnce(Value<'_>) -> R) -> R {
        match self {
            Self::Bytes(bytes) => f(Value::Bytes(bytes)),
            Self::String(text) => f(Value::String(text)),
            Self::Bool(truth) => f(Value::Bool(*truth)),
            Self::I64(number) => f(Value::I64(*number)),
            Self::F64(number) => f(Value::F64(*number)),
            Self::I64List(list) => f(Value::I64List(list)),
            Self::F64List(list) => f(Value::F64List(list)),
            Self::F32List(list) => f(Value::F32List(list)),
            Self::StringList(list) => {
                f(Value::StringList(list.iter().collect::<StringListBuf>().as_list()))
            }
            Self::Run(byte, len) => f(Value::Bytes(&vec![*byte; usize::from(*len)])),
        }
    }
}

#[derive(Arbitrary, Debug)]
struct Case {
    seed: u64,
    level: u8,
    last: bool,
    rows: Vec<(Vec<u8>, Any)>,
    /// Number of additional copies of all rows under other keys, which repeat the values.
    copies: u8,
}

fn build(path: &Path, case: &Case, threads: usize) -> nuthatch_snapshot::Result<()> {
    let options = WriterOptions::new().seed(case.seed).threads(threads).memory(16 << 20);
    let compression = match case.level % 4 {
        0 => Compression::None,
        level => Compression::Zstd { level: level.into() },
    };
    let policy = if case.last { OnDuplicate::Last } else { OnDuplicate::First };
    let mut writer = options.compression(compression).on_duplicate(policy).create(path)?;
    for (key, value) in rows(case) {
        value.with(|value| writer.insert(&key, value))?;
    }
    writer.finish()?;
    Ok(())
}

fn rows(case: &Case) -> impl Iterator<Item = (Vec<u8>, &Any)> {
    (0..=case.copies % 8).flat_map(|copy| {
        let numbered =
            move |key: &[u8]| if copy == 0 { key.to_vec() } else { [key, &[copy]].concat() };
        case.rows.iter().map(move |(key, value)| (numbered(key), value))
    })
}

fuzz_target!(|case: Case| {
    // A file system in memory, if there is one, makes syncs fast.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = tempfile::tempdir_in(folder).expect("a folder");
    let [one, other] = ["one.nut", "other.nut"].map(|name| directory.path().join(name));
    build(&one, &case, 1).expect("rows within the limits");
    build(&other, &case, 2).expect("rows within the limits");
    let [one, other] = [one, other].map(|path| std::fs::read(path).expect("what was built"));
    assert!(one == other, "the number of threads changes the file");
    let snapshot = Snapshot::from_bytes(&one).expect("a good file");
    snapshot.verify_with(1, |_, _| ()).expect("a good file");
    read_all(&snapshot);
    let mut model: HashMap<Vec<u8>, &Any> = HashMap::new();
    for (key, value) in rows(&case) {
        if case.last {
            model.insert(key, value);
        } else {
            model.entry(key).or_insert(value);
        }
    }
    assert_eq!(snapshot.len(), model.len() as u64);
    let mut scratch = Scratch::new();
    for (key, value) in model {
        let found = snapshot.find(&key).expect("a good file").expect("a key that was given");
        let read = found.decompress(&mut scratch).expect("a good value");
        // Compared as text, so that NaN equals itself. An empty list has no type.
        let given = value.with(|value| match found.value_type() == value.value_type() {
            true if found.bytes().is_empty() => format!("{read:?}"),
            _ => format!("{value:?}"),
        });
        assert_eq!(format!("{read:?}"), given);
    }
});
