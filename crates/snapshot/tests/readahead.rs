//! Readahead of the system, as the kernel reports it for the maps of this process.
#![cfg(feature = "zstd")]

use nuthatch_snapshot::{
    Compression, OpenOptions, Readahead, Residency, Result, Snapshot, Value, WriterOptions,
};
use std::fs::read_to_string;
use std::path::Path;

const ROWS: u16 = 40_000;

fn build(path: &Path, shards: u32, compression: Compression) -> Result<()> {
    let options = WriterOptions::new().shards(shards).compression(compression);
    let mut writer = options.create(path)?;
    for number in 0..i64::from(ROWS) {
        writer.insert(format!("key:{number}").as_bytes(), Value::I64(number))?;
    }
    writer.finish()?;
    Ok(())
}

/// Returns the lengths in bytes of the maps of files in a folder: those with and those without
/// random access.
fn mapped(folder: &Path) -> (u64, u64) {
    let smaps = read_to_string("/proc/self/smaps").expect("the maps of this process");
    let (mut random, mut others, mut len) = (0, 0, None);
    for line in smaps.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).ok();
        if let Some((Some(start), Some(end))) = range.map(|(a, b)| (number(a), number(b))) {
            let is_in_folder = line.contains(folder.to_str().expect("UTF-8"));
            len = is_in_folder.then_some(end - start);
        }
        if let (Some(flags), Some(len)) = (line.strip_prefix("VmFlags:"), len) {
            let is_random = flags.split(' ').any(|flag| flag == "rr");
            *(if is_random { &mut random } else { &mut others }) += len;
        }
    }
    (random, others)
}

fn check_all(snapshot: &Snapshot) -> Result<()> {
    for number in 0..i64::from(ROWS) {
        let found = snapshot.get_i64(format!("key:{number}").as_bytes())?;
        assert_eq!(found, Some(number));
    }
    assert_eq!(snapshot.iter().flatten().count(), usize::from(ROWS));
    assert_eq!(snapshot.iter_verified()?.flatten().count(), usize::from(ROWS));
    snapshot.verify()
}

#[test]
fn readahead_is_off_for_index_and_data_if_it_is_turned_off() -> Result<()> {
    for (shards, compression) in [(0, Compression::None), (3, Compression::Zstd { level: 1 })] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.nut");
        build(&path, shards, compression)?;
        let snapshot = OpenOptions::new().readahead(Readahead::Off).open(&path)?;
        let (random, others) = mapped(folder.path());
        let stats = snapshot.stats();
        assert!(random >= stats.index_bytes + stats.data_bytes, "{random} {stats:?}");
        assert!(others < stats.file_len / 4, "{others} {stats:?}");
        check_all(&snapshot)?;
        assert_eq!(mapped(folder.path()), (random, others));
    }
    Ok(())
}

#[test]
fn readahead_is_on_for_files_that_fit_into_the_memory() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.nut");
    build(&path, 0, Compression::None)?;
    for readahead in [Readahead::Auto, Readahead::On] {
        let snapshot = OpenOptions::new().readahead(readahead).open(&path)?;
        let (random, others) = mapped(folder.path());
        assert!(random == 0 && others >= snapshot.stats().file_len, "{random} {others}");
        check_all(&snapshot)?;
    }
    Ok(())
}

#[test]
fn a_copy_in_memory_is_not_advised() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.nut");
    build(&path, 0, Compression::None)?;
    let options = OpenOptions::new().residency(Residency::HugePages).readahead(Readahead::Off);
    let snapshot = options.open(&path)?;
    assert_eq!(mapped(folder.path()), (0, 0));
    check_all(&snapshot)
}
