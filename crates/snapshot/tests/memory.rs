//! A build whose data is ten times its budget stays within it: each test makes a snapshot in a
//! process of its own and looks at the most memory that ever had.

use nuthatch_snapshot::{Compression, Scratch, Snapshot, Value, WriterOptions};
use std::path::Path;
use std::process::Command;

/// The budget of the builds.
const BUDGET: usize = 32 << 20;
/// Keys and values of each build, together.
const DATA: usize = 10 * BUDGET;
/// What a process has besides: its program, its threads, and what the allocator keeps.
const BESIDES: usize = 24 << 20;

/// Tells the child what to build, and where.
const CHILD: &str = "NUTHATCH_TEST_BUILD";

#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    value_len: usize,
    /// Each value is given to as many keys.
    copies: usize,
    compression: Compression,
}

const fn plain(name: &'static str, value_len: usize, copies: usize) -> Workload {
    Workload { name, value_len, copies, compression: Compression::None }
}

const fn compressed(name: &'static str, value_len: usize, copies: usize) -> Workload {
    Workload { name, value_len, copies, compression: Compression::Zstd { level: 1 } }
}

const WORKLOADS: &[Workload] = &[
    plain("small", 84, 1),
    plain("10 KiB", 10 << 10, 1),
    plain("500 KiB", 500 << 10, 1),
    plain("5 MiB", 5 << 20, 1),
    plain("repeated", 84, 2),
    plain("often repeated", 10 << 10, 100),
    compressed("small, compressed", 84, 1),
    compressed("10 KiB, compressed", 10 << 10, 1),
    compressed("5 MiB, compressed", 5 << 20, 1),
    compressed("repeated, compressed", 3 << 10, 10),
];

/// Calls `put` with each key and value.
fn rows(workload: Workload, mut put: impl FnMut(&[u8], &[u8])) {
    let Workload { value_len, copies, compression, .. } = workload;
    let mask = if compression == Compression::None { u64::MAX } else { 0x0fff_ffff };
    let mut value = vec![0; value_len];
    let count = DATA / (16 + value_len);
    for row in 0..count {
        let mut state = (row / copies) as u64;
        for bytes in value.chunks_mut(8) {
            // A number's neighbours shall have little in common: the constants are splitmix64's.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)) & mask;
            bytes.copy_from_slice(&mixed.to_le_bytes()[..bytes.len()]);
        }
        put(format!("key_{row:012}").as_bytes(), &value);
    }
}

fn build(workload: Workload, path: &Path) -> nuthatch_snapshot::Result<()> {
    let options = WriterOptions::new().memory(BUDGET).threads(2).compression(workload.compression);
    let mut writer = options.create(path)?;
    rows(workload, |key, value| writer.insert(key, Value::Bytes(value)).expect("room on the disk"));
    writer.finish()?;
    Ok(())
}

/// A line of `/proc/self/status`, in bytes.
fn status(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux system");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    let kib = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    kib.parse::<usize>().expect("a number") << 10
}

/// Not a test of its own: the other tests run it in a child.
#[test]
fn child() {
    let Some(what) = std::env::var_os(CHILD) else { return };
    let what = what.into_string().expect("UTF-8");
    let (name, path) = what.split_once(':').expect("a name and a path");
    let workload = WORKLOADS.iter().find(|w| w.name == name).expect("a workload");
    build(*workload, Path::new(path)).expect("room on the disk");
    println!("peak={}", status("VmHWM"));
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
    let peak: usize = output
        .lines()
        .find_map(|line| line.split_once("peak=")?.1.parse().ok())
        .expect("the child tells its peak");
    println!("{name}: {} MiB", peak >> 20);
    assert!(peak <= BUDGET + BESIDES, "{name}: {} MiB", peak >> 20);
    let snapshot = Snapshot::open(&path).expect("what was built");
    let mut count = 0;
    let mut scratch = Scratch::new();
    rows(workload, |key, value| {
        count += 1;
        if count % 10 == 0 {
            let found = snapshot.find(key).expect("a good file").expect("a key that was given");
            let found = found.decompress(&mut scratch).expect("a good file");
            assert!(found == Value::Bytes(value), "{}", key.escape_ascii());
        }
    });
    assert_eq!(snapshot.len(), count);
}

macro_rules! stays_within_its_budget {
    ($($name:ident: $workloads:expr;)*) => {$(
        #[test]
        fn $name() {
            $workloads.iter().copied().for_each(check);
        }
    )*};
}
stays_within_its_budget! {
    small_rows: WORKLOADS[..1];
    large_values: WORKLOADS[1..4];
    values_that_repeat: WORKLOADS[4..6];
    compressed_values: WORKLOADS[6..];
}
