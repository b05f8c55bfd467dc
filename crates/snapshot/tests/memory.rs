//! Tests of the memory budget with ten times as much data. Each test builds a snapshot in a child
//! process and checks its peak memory.
#![cfg(feature = "zstd")]

use nuthatch_snapshot::{Compression, Error, OnDuplicate, Scratch, Snapshot, Value, WriterOptions};
use nuthatch_testing::random::Random;
use std::path::Path;
use std::process::Command;

/// Memory budget of the builds in bytes.
const BUDGET: usize = 32 << 20;
/// Total length of keys and values of each build in bytes.
const DATA: usize = 10 * BUDGET;
/// Memory of a process besides the budget: program, threads and allocator.
const BESIDES: usize = 8 << 20;

/// The environment variable with the input and the path of the child.
const CHILD: &str = "NUTHATCH_TEST_BUILD";

#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    key_len: usize,
    value_len: usize,
    /// Number of keys with the same value.
    copies: usize,
    /// Number of rows with the same key.
    times: usize,
    threads: usize,
    compression: Compression,
    on_duplicate: OnDuplicate,
}

impl Workload {
    const fn new(name: &'static str, value_len: usize) -> Self {
        let compression = Compression::None;
        Self {
            name,
            key_len: 16,
            value_len,
            copies: 1,
            times: 1,
            threads: 4,
            compression,
            on_duplicate: OnDuplicate::Last,
        }
    }

    /// All rows have the same key.
    const fn one_key(self, on_duplicate: OnDuplicate) -> Self {
        Self { times: usize::MAX, on_duplicate, ..self }
    }

    const fn copies(self, copies: usize) -> Self {
        Self { copies, ..self }
    }

    const fn compressed(self) -> Self {
        Self { compression: Compression::Zstd { level: 1 }, ..self }
    }

    fn rows(self) -> usize {
        DATA / (self.key_len + self.value_len)
    }
}

const PLAIN: &[Workload] = &[
    Workload::new("small", 84),
    Workload { threads: 64, ..Workload::new("many threads", 84) },
    Workload { key_len: 60_000, ..Workload::new("long keys", 10) },
    Workload { times: 100, ..Workload::new("duplicates", 84) },
    Workload { times: 1 << 20, ..Workload::new("hot keys", 84) },
];
const ONE_KEY: &[Workload] = &[
    Workload::new("one key, error", 84).one_key(OnDuplicate::Error),
    Workload::new("one key, first", 84).one_key(OnDuplicate::First),
    Workload::new("one key, last", 84).one_key(OnDuplicate::Last),
    Workload::new("one key, error, 10 KiB", 10 << 10).one_key(OnDuplicate::Error),
    Workload::new("one key, first, 10 KiB", 10 << 10).one_key(OnDuplicate::First),
    Workload::new("one key, last, compressed", 10 << 10).one_key(OnDuplicate::Last).compressed(),
];
const LARGE: &[Workload] = &[
    Workload::new("10 KiB", 10 << 10),
    Workload::new("500 KiB", 500 << 10),
    Workload::new("5 MiB", 5 << 20),
];
const REPEATED: &[Workload] = &[
    Workload::new("twice", 84).copies(2),
    Workload::new("a hundred times", 10 << 10).copies(100),
    Workload::new("one value", 84).copies(usize::MAX),
];
const COMPRESSED: &[Workload] = &[
    Workload::new("small, compressed", 84).compressed(),
    Workload::new("10 KiB, compressed", 10 << 10).compressed(),
    Workload::new("5 MiB, compressed", 5 << 20).compressed(),
    Workload::new("repeated, compressed", 3 << 10).copies(10).compressed(),
];

/// Calls `put` with each key and value.
fn for_each_row(workload: Workload, mut put: impl FnMut(&[u8], &[u8])) {
    let mask = if workload.compression == Compression::None { u64::MAX } else { 0x0fff_ffff };
    let mut value = vec![0; workload.value_len];
    let mut key = vec![b'k'; workload.key_len];
    for row in 0..workload.rows() {
        let mut random = Random::new((row / workload.copies) as u64);
        for bytes in value.chunks_mut(8) {
            let mixed = random.next_u64() & mask;
            bytes.copy_from_slice(&mixed.to_le_bytes()[..bytes.len()]);
        }
        let number = format!("{:012}", row / workload.times);
        key[..12].copy_from_slice(number.as_bytes());
        put(&key, &value);
    }
}

fn build(workload: Workload, path: &Path) -> nuthatch_snapshot::Result<()> {
    let options = WriterOptions::new()
        .memory(BUDGET)
        .threads(workload.threads)
        .on_duplicate(workload.on_duplicate)
        .compression(workload.compression);
    let mut writer = options.create(path)?;
    let mut result = Ok(());
    for_each_row(workload, |key, value| {
        if result.is_ok() {
            result = writer.insert(key, Value::Bytes(value));
        }
    });
    result.and_then(|()| writer.finish()).map(|_| ())
}

/// Returns a value of `/proc/self/status` in bytes.
fn status(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux system");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    let kib = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    kib.parse::<usize>().expect("a number") << 10
}

/// The child process of the other tests. Does nothing otherwise.
#[test]
fn child() {
    let Some(what) = std::env::var_os(CHILD) else { return };
    let what = what.into_string().expect("UTF-8");
    let (name, path) = what.split_once(':').expect("a name and a path");
    let mut all = [PLAIN, ONE_KEY, LARGE, REPEATED, COMPRESSED].into_iter().flatten();
    let workload = all.find(|workload| workload.name == name).expect("a workload");
    match build(*workload, Path::new(path)) {
        Err(Error::Duplicate(rows)) if workload.on_duplicate == OnDuplicate::Error => {
            assert_eq!((rows.first, rows.second), (0, 1));
        }
        built => {
            built.expect("room on the disk");
            let rejects = workload.on_duplicate == OnDuplicate::Error && workload.times > 1;
            assert!(!rejects, "duplicate keys were accepted");
        }
    }
    println!("peak={}", status("VmHWM"));
    println!("reserved={}", status("VmPeak"));
}

fn check(workload: Workload) {
    let name = workload.name;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("large.nut");
    let child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, format!("{name}:{}", path.display()))
        .output()
        .expect("a process");
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{output}{}", String::from_utf8_lossy(&child.stderr));
    let number_after = |what: &str| -> usize {
        let number = output.lines().find_map(|line| line.split_once(what)?.1.parse().ok());
        number.expect("the child tells its memory")
    };
    let peak = number_after("peak=");
    println!("{name}: {} MiB", peak >> 20);
    // The address sanitizer keeps freed memory. It reserves terabytes of address space.
    let sanitized = number_after("reserved=") > 1 << 40;
    assert!(peak <= BUDGET + BESIDES || sanitized, "{name}: {} MiB", peak >> 20);
    if workload.on_duplicate == OnDuplicate::Error {
        assert!(!path.exists(), "a failed build leaves no file");
        return;
    }
    let snapshot = Snapshot::open(&path).expect("what was built");
    if workload.times == usize::MAX {
        return check_one_key(workload, &snapshot);
    }
    let mut row = 0;
    let mut scratch = Scratch::new();
    for_each_row(workload, |key, value| {
        row += 1;
        // The last row with a key is kept.
        if row % workload.times == 0 && (row % 10 == 0 || workload.times > 100) {
            let found = snapshot.find(key).expect("a good file").expect("a key that was given");
            let found = found.decompress(&mut scratch).expect("a good file");
            assert!(found == Value::Bytes(value), "{}", key.escape_ascii());
        }
    });
    assert_eq!(snapshot.len(), workload.rows().div_ceil(workload.times) as u64);
}

/// Checks that the first or the last row of the only key was kept.
fn check_one_key(workload: Workload, snapshot: &Snapshot) {
    let (mut rows, mut expected) = (0, None);
    for_each_row(workload, |key, value| {
        if rows == 0 || workload.on_duplicate == OnDuplicate::Last {
            expected = Some((key.to_vec(), value.to_vec()));
        }
        rows += 1;
    });
    let (key, value) = expected.expect("a row");
    let found = snapshot.get(&key).expect("a good file").expect("the key");
    assert!(found == Value::Bytes(&value), "{}", workload.name);
    assert_eq!((snapshot.len(), rows), (1, workload.rows()));
}

macro_rules! stays_within_its_budget {
    ($($name:ident: $workloads:expr;)*) => {$(
        #[test]
        fn $name() {
            for workload in $workloads {
                check(*workload);
            }
        }
    )*};
}
stays_within_its_budget! {
    small_values: PLAIN;
    one_key: ONE_KEY;
    large_values: LARGE;
    values_that_repeat: REPEATED;
    compressed_values: COMPRESSED;
}
