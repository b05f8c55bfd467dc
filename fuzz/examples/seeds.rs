//! Writes seeds for the fuzz targets: one small snapshot of every kind, a manifest, and scripts for
//! the chunk cache with the lookups of `testdata/chunks`.
//!
//! `cargo run --manifest-path fuzz/Cargo.toml --example seeds -- fuzz/seeds`

use nuthatch_fuzz::chunks::{GET, PUT, step};
use nuthatch_snapshot::{Compression, StringListBuf, Value, Writer, WriterOptions};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

type AnyResult = Result<(), Box<dyn std::error::Error>>;

fn seed(
    folder: &Path,
    name: &str,
    options: &WriterOptions,
    fill: impl FnOnce(&mut Writer) -> nuthatch_snapshot::Result<()>,
) -> AnyResult {
    let mut writer = options.create(folder.join(format!("{name}.nut")))?;
    fill(&mut writer)?;
    writer.finish()?;
    Ok(())
}

/// Writes a value of every type.
fn types(writer: &mut Writer) -> nuthatch_snapshot::Result<()> {
    let mut strings = StringListBuf::from_iter(["", "größe", "nut"]);
    writer.insert(b"", Value::Bytes(&[0, 255]))?;
    writer.insert(b"string", Value::String("höhle"))?;
    writer.insert(b"bool", Value::Bool(true))?;
    writer.insert(b"number i64", Value::I64(-1))?;
    writer.insert(b"number f64", Value::F64(0.5))?;
    writer.insert(b"list of i64", Value::I64List(&[1, -2]))?;
    writer.insert(b"list of f64", Value::F64List(&[0.5]))?;
    writer.insert(b"list of f32", Value::F32List(&[0.25; 3]))?;
    writer.insert(b"list of strings", Value::StringList(strings.as_list()))?;
    writer.insert(b"list of nothing", Value::EmptyList)
}

fn numbered(writer: &mut Writer, count: u32) -> nuthatch_snapshot::Result<()> {
    (0..count).try_for_each(|i| writer.insert(format!("k{i}").as_bytes(), Value::I64(i.into())))
}

/// Writes long keys and repeated values, which are stored as references. Some values are aligned.
fn shared(writer: &mut Writer) -> nuthatch_snapshot::Result<()> {
    for i in 0..20_u8 {
        let text = format!("a value that occurs more than once, number {}", i % 3);
        writer.insert(&[b's', i], Value::String(&text))?;
        writer.insert(&[b'l', i], Value::F64List(&[f64::from(i % 2); 8]))?;
    }
    writer.insert(&[b'k'; 300], Value::Bytes(&[7; 300]))
}

fn compressed(writer: &mut Writer, count: usize) -> nuthatch_snapshot::Result<()> {
    (0..count).try_for_each(|i| {
        let text = format!("{{\"name\":\"somebody\",\"number\":{i},\"of\":\"{count}\"}}").repeat(2);
        writer.insert(format!("k{i}").as_bytes(), Value::String(&text))
    })
}

/// Writes one script for each set of present chunks: it puts these chunks, then executes all
/// lookups of the table.
fn lookups(folder: &Path) -> AnyResult {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/chunks/ranges.csv");
    let mut scripts: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for line in std::fs::read_to_string(table)?.lines() {
        let columns: Vec<_> = line.split(',').collect();
        let ["chunks", present, range, _] = columns[..] else { continue };
        let Some(range) = ranges(range).pop() else { continue };
        let script = scripts.entry(present.replace(' ', "_")).or_insert_with(|| {
            let puts = ranges(present).into_iter().flat_map(|range| step(PUT, 1, &range));
            puts.collect()
        });
        script.extend(step(GET, 1, &range));
    }
    std::fs::create_dir_all(folder)?;
    for (present, script) in scripts {
        std::fs::write(folder.join(format!("present-{present}")), script)?;
    }
    Ok(())
}

/// Returns the non-empty ranges in a cell of the table.
fn ranges(cell: &str) -> Vec<Range<u64>> {
    let range = |part: &str| {
        let (start, end) = part.split_once('-')?;
        Some(start.parse().ok()?..end.parse().ok()?)
    };
    let ranges = cell.split(' ').filter_map(range);
    ranges.filter(|range: &Range<u64>| range.start < range.end).collect()
}

/// Writes a manifest, with the leading byte that selects the correction of checksums.
fn manifest(folder: &Path) -> AnyResult {
    let made = tempfile::tempdir()?;
    let path = made.path().join("set.nut");
    let mut writer = WriterOptions::new().shards(3).create(&path)?;
    numbered(&mut writer, 20)?;
    writer.set_metadata("name", b"numbers")?;
    writer.finish()?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("three-shards"), [&[1], &std::fs::read(path)?[..]].concat())?;
    Ok(())
}

fn main() -> AnyResult {
    let folder = std::env::args_os().nth(1).ok_or("which folder?")?;
    let folder = Path::new(&folder);
    lookups(&folder.join("chunks"))?;
    manifest(&folder.join("manifest"))?;
    let folder = &folder.join("open");
    std::fs::create_dir_all(folder)?;
    let plain = WriterOptions::new();
    let zstd = plain.clone().compression(Compression::Zstd { level: 3 });
    seed(folder, "empty", &plain, |_| Ok(()))?;
    seed(folder, "types", &plain, types)?;
    seed(folder, "overflow", &plain, |writer| numbered(writer, 100))?;
    seed(folder, "metadata", &plain, |writer| {
        writer.set_metadata("name", b"numbers")?;
        numbered(writer, 3)
    })?;
    seed(folder, "shared", &plain, shared)?;
    seed(folder, "compressed", &zstd, |writer| compressed(writer, 5))?;
    seed(folder, "dictionary", &zstd, |writer| compressed(writer, 70))
}
