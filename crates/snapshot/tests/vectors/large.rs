//! A file beyond 4 GiB, as a table of the few bytes that are not zero: a reader that keeps an
//! offset in 32 bits fails.
//!
//! The writer makes no such file, since it leaves no gaps between records. So this one is put
//! together here, with two lines. The first one has records at 0 and above 4 GiB, and so a shift of
//! 17 bits; the base of the second one is above 5 GiB.

use crate::{AnyResult, committed, json};
use nuthatch_snapshot::layout::{directory, header, line};
use nuthatch_snapshot::{Snapshot, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use xxhash_rust::xxh3::xxh3_64;

const LINES: u64 = 2;
const INDEX: u64 = 576;
const DATA: u64 = 704;
const SHIFT: u32 = 17;
/// Offsets in the data section of the records above 4 GiB that the first line has.
const FAR: [u64; 2] = [(1 << 32) + (1 << 17), (1 << 32) + (2 << 17)];
/// Offset of the records of the second line.
const BASE: u64 = (5 << 30) + 64;
/// Checksum of the data of the only partition: 5 GiB, which are hashed by verification alone.
const DATA_HASH: u64 = 0x47f0_af04_cdec_e647;
const TEXT: &str = "a value above four gibibytes";

/// A record: its offset, key, type code, and what follows the key: the value or a reference.
struct Record {
    at: u64,
    key: Vec<u8>,
    code: u8,
    rest: Vec<u8>,
    value_len: u64,
    json: String,
}

impl Record {
    fn new(at: u64, key: Vec<u8>, value: &Value<'_>, stored: &[u8]) -> Self {
        let json = json::row(&key, value);
        let code = value.value_type().code();
        Self { at, key, code, rest: stored.to_vec(), value_len: stored.len() as u64, json }
    }

    /// Makes this record refer to a value elsewhere.
    fn referring_to(mut self, offset: u64) -> Self {
        self.code |= 32;
        self.rest = offset.to_le_bytes()[..6].to_vec();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let head = [self.code, self.key.len() as u8, self.value_len as u8];
        [&head[..], &self.key, &self.rest].concat()
    }

    fn end(&self) -> u64 {
        self.at + self.bytes().len() as u64
    }
}

/// Returns the first key of this length whose home is the line.
fn key(prefix: &str, number: u64) -> Vec<u8> {
    let keys = (0..100).map(|i| format!("{prefix}{i:02}").into_bytes());
    let home = |key: &Vec<u8>| (u128::from(xxh3_64(key)) * u128::from(LINES)) >> 64;
    keys.into_iter().find(|key| home(key) == u128::from(number)).expect("a key of either line")
}

fn records() -> [Vec<Record>; 2] {
    let numbers = [1.5, -2.5];
    let list: Vec<u8> = numbers.iter().flat_map(|n: &f64| n.to_le_bytes()).collect();
    let text = |at, key: Vec<u8>| Record::new(at, key, &Value::String(TEXT), TEXT.as_bytes());
    let far = text(FAR[0], key("far", 0));
    let value_at = far.at + 3 + far.key.len() as u64;
    // 3 bytes of head and 5 of key: the values that follow are aligned.
    let first = vec![
        text(0, key("near", 0)),
        far,
        Record::new(FAR[1], key("num", 0), &Value::I64(-7), &(-7_i64).to_le_bytes()),
    ];
    let second = vec![
        text(BASE, key("shared", 1)).referring_to(value_at),
        Record::new(BASE + 64, key("lis", 1), &Value::F64List(&numbers), &list),
    ];
    [first, second]
}

/// Returns the 64 bytes of a line.
fn index_line(records: &[Record], base: u64, shift: u32) -> [u8; line::LEN] {
    let mut bytes = [0; line::LEN];
    for (slot, record) in records.iter().enumerate() {
        let fingerprint = (xxh3_64(&record.key) & 0x7fff | 0x8000) as u16;
        let offset = u16::try_from((record.at - base) >> shift).expect("16 bits");
        let at = line::FINGERPRINTS + 2 * slot;
        bytes[at..at + 2].copy_from_slice(&fingerprint.to_le_bytes());
        let at = line::OFFSETS + 2 * slot;
        bytes[at..at + 2].copy_from_slice(&offset.to_le_bytes());
    }
    bytes[line::SHIFT] = shift as u8;
    bytes[line::BASE..line::BASE + 6].copy_from_slice(&base.to_le_bytes()[..6]);
    bytes
}

/// The bytes that are not zero, by offset in the file, and the length of the file.
struct Sparse {
    runs: BTreeMap<u64, Vec<u8>>,
    len: u64,
}

impl Sparse {
    fn new() -> Self {
        let records = records();
        let all = || records.iter().flatten();
        let end = all().map(Record::end).max().expect("records");
        let data_len = end.next_multiple_of(64) + 576;
        let index = [index_line(&records[0], 0, SHIFT), index_line(&records[1], BASE, 0)].concat();
        let mut entry = [0; directory::ENTRY_LEN];
        let mut put = |at: usize, number: u64| {
            entry[at..at + 8].copy_from_slice(&number.to_le_bytes());
        };
        put(directory::DATA_LEN, end);
        put(directory::INDEX_HASH, xxh3_64(&index));
        put(directory::DATA_HASH, DATA_HASH);
        let mut runs = BTreeMap::new();
        runs.insert(0, Self::header(&records, data_len, xxh3_64(&entry)));
        runs.insert(512, entry.to_vec());
        runs.insert(INDEX, index);
        runs.extend(all().map(|record| (DATA + record.at, record.bytes())));
        Self { runs, len: DATA + data_len }
    }

    fn header(records: &[Vec<Record>; 2], data_len: u64, directory_hash: u64) -> Vec<u8> {
        let all = || records.iter().flatten();
        let mut bytes = vec![0; header::LEN];
        let mut put = |at: usize, number: u64, len: usize| {
            bytes[at..at + len].copy_from_slice(&number.to_le_bytes()[..len]);
        };
        put(header::VERSION_MAJOR, 1, 2);
        put(header::HEADER_LEN, 512, 4);
        put(header::FILE_LEN, DATA + data_len, 8);
        put(header::ENTRIES, all().count() as u64, 8);
        put(header::LINES_PER_PARTITION, LINES, 4);
        put(header::FLAGS, 4, 4);
        let sections = [
            (header::DICTIONARY, 512, 0),
            (header::DIRECTORY, 512, 32),
            (header::INDEX, INDEX, 64 * LINES),
            (header::DATA, DATA, data_len),
        ];
        for (at, offset, len) in sections {
            put(at, offset, 8);
            put(at + 8, len, 8);
        }
        put(header::DICTIONARY_HASH, xxh3_64(b""), 8);
        put(header::DIRECTORY_HASH, directory_hash, 8);
        put(header::KEY_BYTES, all().map(|record| record.key.len() as u64).sum(), 8);
        put(header::VALUE_BYTES, all().map(|record| record.value_len).sum(), 8);
        let stored = all().filter(|record| record.code & 32 == 0);
        put(header::STORED_VALUE_BYTES, stored.map(|record| record.value_len).sum(), 8);
        put(header::SHARED_ENTRIES, 1, 8);
        for code in 1..=10 {
            let of_type = all().filter(|record| record.code & 15 == code).count() as u64;
            put(header::ENTRIES_BY_TYPE + 8 * usize::from(code), of_type, 8);
        }
        bytes[..8].copy_from_slice(b"\x89NUT\r\n\x1a\n");
        let hash = xxh3_64(&bytes[..header::HASH]);
        bytes[header::HASH..].copy_from_slice(&hash.to_le_bytes());
        bytes
    }

    fn create(&self, path: &std::path::Path) -> AnyResult {
        let file = File::options().write(true).create_new(true).open(path)?;
        file.set_len(self.len)?;
        for (at, bytes) in &self.runs {
            file.write_all_at(bytes, *at)?;
        }
        Ok(())
    }

    fn to_json(&self) -> String {
        let runs = self.runs.iter().map(|(at, bytes)| {
            let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
            format!("{{\"at\":{at},\"hex\":\"{}\"}}", hex.collect::<String>())
        });
        let rows = records().into_iter().flatten().map(|record| record.json);
        let [runs, rows] = [runs.collect::<Vec<_>>(), rows.collect()].map(|list| list.join(",\n"));
        format!(
            "{{\"name\":\"large\",\"length\":{},\"patch\":[\n{runs}],\n\"absent\":[\"absent 0\"],\n\
             \"entries\":[\n{rows}]}}\n",
            self.len
        )
    }
}

#[test]
fn a_file_beyond_4_gib_is_read_at_64_bit_offsets() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let sparse = Sparse::new();
    let path = directory.path().join("large.nut");
    sparse.create(&path)?;
    committed("large.json", sparse.to_json().as_bytes())?;
    let snapshot = Snapshot::open(&path)?;
    let expected: Vec<String> = records().into_iter().flatten().map(|record| record.json).collect();
    assert_eq!(crate::dump(&snapshot)?, expected);
    for record in records().iter().flatten() {
        let found = snapshot.get(&record.key)?.ok_or("a key that is there")?;
        assert_eq!(json::row(&record.key, &found.as_value()), record.json);
    }
    assert!(!snapshot.contains(b"absent 0")?);
    snapshot.verify()?;
    Ok(())
}
