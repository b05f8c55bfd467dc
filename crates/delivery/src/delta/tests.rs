//! Deltas that are damaged, or written by others.

use super::header::{Header, LEN};
use super::read::{DeltaReader, Row};
use super::rebuild::{Limits, Rebuild};
use super::write;
use crate::error::Error;
use blake3::hash;
use nuthatch_snapshot::{BuildParameters, Snapshot, Value, Writer};
use nuthatch_testing::random::Random;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

const LIMITS: Limits = Limits { threads: 1, memory: 32 << 20, entry_bytes: 1 << 30 };

/// An old and a new file, and the delta between them.
struct Case {
    folder: TempDir,
    header: Header,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let build = |name: &str, removed: i64| {
            let path = folder.path().join(name);
            let mut writer = Writer::create(&path).expect("a writer");
            for number in (0..300).filter(|number| number % 100 != removed) {
                let key = format!("key {number}");
                let list = [number as f64, removed as f64];
                let value =
                    if number % 3 == 0 { Value::F64List(&list) } else { Value::I64(removed) };
                writer.insert(key.as_bytes(), value).expect("a row");
            }
            writer.set_metadata("removed", removed.to_string().as_bytes()).expect("metadata");
            writer.finish().expect("a snapshot");
            Snapshot::open(&path).expect("a snapshot")
        };
        let (old, new) = (build("old", 1), build("new", 2));
        let parameters = BuildParameters::of(&new).expect("readable").expect("parameters");
        let bytes = |name: &str| fs::read(folder.path().join(name)).expect("a file");
        let (from, to) = (hash(&bytes("old")), hash(&bytes("new")));
        let header = Header { parameters, revision: parameters.revision(), from, to };
        let path = folder.path().join("delta");
        write((&old, &new), &header, &path, 1 << 20).expect("written").expect("its length");
        Self { folder, header }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a delta with a header and these rows.
    fn write(&self, header: &Header, rows: &[u8]) {
        let frame = zstd::encode_all(rows, 1).expect("compressed");
        fs::write(self.path("delta"), [&header.encode()[..], &frame].concat()).expect("written");
    }

    /// Returns the bytes of the frame.
    fn rows(&self) -> Vec<u8> {
        let bytes = fs::read(self.path("delta")).expect("a delta");
        zstd::decode_all(&bytes[LEN..]).expect("a frame")
    }

    /// Builds the new file with the delta.
    fn rebuild(&self) -> Result<(), Error> {
        self.rebuild_within(LIMITS)
    }

    fn rebuild_within(&self, limits: Limits) -> Result<(), Error> {
        let rebuild = Rebuild {
            base: &self.path("old"),
            deltas: &[self.path("delta")],
            limits,
            from: self.header.from,
            to: self.header.to,
            cancelled: &AtomicBool::new(false),
        };
        rebuild.run(&self.path("built"))
    }
}

/// Reads all rows. Returns their number.
fn read_all(path: &Path) -> Result<u64, Error> {
    let mut reader = DeltaReader::open(path)?;
    let mut rows = 0;
    while let Some(row) = reader.next_row()? {
        match row {
            Row::Removed(key) | Row::Put(key, ..) => assert!(key.len() <= 65_535),
        }
        rows += 1;
    }
    Ok(rows)
}

#[test]
fn the_new_file_is_built_from_the_old_one() {
    let case = Case::new();
    assert_eq!(read_all(&case.path("delta")).expect("rows"), 300);
    case.rebuild().expect("built");
    let read = |name: &str| fs::read(case.path(name)).expect("a file");
    assert!(read("built") == read("new"));
}

#[test]
fn a_delta_cut_at_any_byte_or_with_other_bytes_is_an_error() {
    let case = Case::new();
    let whole = fs::read(case.path("delta")).expect("a delta");
    let path = case.path("cut");
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).expect("written");
        assert!(read_all(&path).is_err(), "{len} of {} bytes", whole.len());
    }
    // Rows that were changed before they were compressed, as an attacker can write them.
    let rows = case.rows();
    let mut random = Random::new(95);
    for _ in 0..300 {
        let mut changed = rows.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(changed.len() as u64) as usize;
            changed[at] = random.below(256) as u8;
        }
        case.write(&case.header, &changed);
        let _ = read_all(&case.path("delta"));
        if changed != rows {
            assert!(case.rebuild().is_err(), "the result has other bytes");
            assert!(!case.path("built").exists());
        }
    }
}

#[test]
fn a_length_that_is_not_there_takes_no_memory() {
    let case = Case::new();
    // No metadata, then a string with a key of one byte and a length of 2^63 bytes.
    let rows = [&[0; 4][..], &[2, 1, 0, b'k'], &(1_u64 << 63).to_le_bytes(), b"short"].concat();
    case.write(&case.header, &rows);
    assert!(matches!(read_all(&case.path("delta")), Err(Error::Contents { .. })));
}

#[test]
fn a_delta_of_another_writer_or_another_file_is_refused() {
    let case = Case::new();
    let rows = case.rows();
    let other_revision = Header { revision: 7, ..case.header.clone() };
    let other_target = Header { to: hash(b"another file"), ..case.header.clone() };
    let other_base = Header { from: hash(b"another file"), ..case.header.clone() };
    for (header, expected) in [
        (other_revision, "a delta of the same version"),
        (other_target, "a delta to "),
        (other_base, "a delta from "),
    ] {
        case.write(&header, &rows);
        let error = case.rebuild().expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!case.path("built").exists());
    }
}

#[test]
fn a_build_stops_at_the_limit_of_its_keys_and_values() {
    let case = Case::new();
    for entry_bytes in [1 << 10, 7 << 10] {
        let error = case.rebuild_within(Limits { entry_bytes, ..LIMITS }).expect_err("a limit");
        assert!(error.to_string().contains("keys and values of at most"), "{error}");
        assert!(!case.path("built").exists());
    }
}

#[test]
fn metadata_and_values_beyond_the_limits_take_no_memory() {
    let case = Case::new();
    let long = vec![0; 20 << 20];
    let metadata = [&1_u32.to_le_bytes()[..], &[1], &(20_u32 << 20).to_le_bytes(), b"a", &long];
    let value = [&[0; 4][..], &[1, 1, 0, b'k'], &(20_u64 << 20).to_le_bytes(), &long];
    for (rows, expected) in [(metadata.concat(), "the rows of a delta"), (value.concat(), "value")]
    {
        case.write(&case.header, &rows);
        let error = read_all(&case.path("delta")).expect_err("a limit").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Rows of keys that a delta has removed are not stored, and still count.
#[test]
fn rows_of_removed_keys_count_in_the_limit() {
    let case = Case::new();
    let value = vec![b'x'; 1 << 20];
    let put = [&[2, 1, 0, b'k'][..], &(value.len() as u64).to_le_bytes(), &value].concat();
    let rows = [&[0; 4][..], &[0, 1, 0, b'k'], &put.repeat(40)].concat();
    case.write(&case.header, &rows);
    let limits = Limits { entry_bytes: 32 << 20, ..LIMITS };
    let error = case.rebuild_within(limits).expect_err("a limit").to_string();
    assert!(error.contains("keys and values of at most"), "{error}");
}
