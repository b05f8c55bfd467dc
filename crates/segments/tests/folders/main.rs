//! Tests of folders of segments: stored parts are found, the limit holds, and wrong bytes are never
//! returned.

mod access;
mod contract;
mod damage;
mod eviction;
mod fetch_locks;
mod growth;
mod other_user;
mod permissions;
mod puts;
mod torn;
mod waiting;

use nuthatch_segments::{Check, Id, Options, Outcome, Part, ReadError, Record, Segments, checksum};
use std::path::{Path, PathBuf};

pub(crate) const LABEL: &[u8] = b"label";

/// A folder that is removed after the test.
pub(crate) struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub(crate) fn open(&self, options: &Options) -> Segments {
        Segments::open(self.path(), options).expect("a folder of segments")
    }

    /// Opens the folder with a limit of 4 MiB.
    pub(crate) fn small(&self) -> Segments {
        self.open(&small())
    }

    /// Returns the bytes of disk that the folder and its files take.
    pub(crate) fn disk_bytes(&self) -> u64 {
        disk_bytes(&self.path())
    }

    pub(crate) fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path()).expect("the folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut paths: Vec<_> = paths
            .filter(|path| {
                path.ends_with(ending) || path.extension().is_some_and(|found| found == ending)
            })
            .collect();
        paths.sort();
        paths
    }
}

pub(crate) fn small() -> Options {
    Options::new().limit(4 << 20).check(Check::Always)
}

pub(crate) fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let own = std::fs::metadata(path).expect("the folder").blocks() * 512;
    let entries = std::fs::read_dir(path).expect("the folder");
    own + entries
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|found| (found.blocks() * 512).max(found.len()))
        .sum::<u64>()
}

pub(crate) fn name(number: u64) -> [u8; 16] {
    let mut name = [0x77; 16];
    name[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    name
}

/// Returns bytes that are a function of a number.
pub(crate) fn bytes(number: u64, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number as usize * 31 + at * 7 + at / 251) as u8).collect()
}

pub(crate) fn put(segments: &Segments, number: u64, len: usize) -> Outcome {
    let data = bytes(number, len);
    put_bytes(segments, number, &data)
}

pub(crate) fn put_bytes(segments: &Segments, number: u64, data: &[u8]) -> Outcome {
    let parts = [Part { end: data.len() as u64, checksum: checksum(data) }];
    let name = name(number);
    let record = Record { name, first: 0, label: LABEL, expiry: 0, parts: &parts, data };
    segments.put(&record).expect("a put")
}

/// Reads part 0 of a number and returns its length, or `None` for a miss. Panics if the bytes are
/// wrong.
pub(crate) fn get(segments: &Segments, number: u64) -> Option<usize> {
    let found = segments.find(&Id::new(name(number), 0), LABEL)?;
    found.count_use(0..1);
    let mut out = vec![0; found.part_len(0) as usize];
    match found.read(0, &mut out) {
        Ok(()) => {
            assert_eq!(out, bytes(number, out.len()), "bytes of {number}");
            Some(out.len())
        }
        Err(ReadError::Evicted | ReadError::Damaged(_)) => None,
    }
}
