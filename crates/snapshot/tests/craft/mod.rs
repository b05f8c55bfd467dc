//! Hand-made snapshots: sparse files with records at chosen offsets, built from the constants of
//! `layout.rs`. They can be larger than any disk.

use nuthatch_snapshot::layout::{self, SECTION_ALIGN, directory, header, line, record};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Returns the offset of the data in a file with this number of lines.
pub(crate) fn data_start(lines: u64) -> u64 {
    header::LEN as u64 + SECTION_ALIGN + lines * line::LEN as u64
}

/// The bytes of a record. Zeros follow them.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) key: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

impl Record {
    /// Returns a record with short lengths.
    pub(crate) fn short(key: &[u8], tag: u8, value: &[u8]) -> Self {
        let head = [tag, key.len() as u8, value.len() as u8];
        Self { key: key.to_vec(), bytes: [&head, key, value].concat() }
    }

    /// Returns a record with long lengths. `value` may be shorter than its length, or begin with
    /// padding, or be a reference.
    pub(crate) fn long(key: &[u8], tag: u8, value_len: u64, value: &[u8]) -> Self {
        let mut head = vec![tag | record::LONG];
        head.extend_from_slice(&(key.len() as u16).to_le_bytes());
        head.extend_from_slice(&value_len.to_le_bytes()[..5]);
        Self { key: key.to_vec(), bytes: [&head, key, value].concat() }
    }
}

/// A line of the index: a base, a shift, and records at units of `2^shift` from the base.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) base: u64,
    pub(crate) shift: u8,
    pub(crate) records: Vec<(u16, Record)>,
}

impl Line {
    fn to_bytes(&self, seed: u64) -> [u8; line::LEN] {
        let mut bytes = [0; line::LEN];
        for (slot, (units, record)) in self.records.iter().enumerate() {
            let fingerprint = xxh3_64_with_seed(&record.key, seed) as u16 | line::IN_USE;
            let (at, offset_at) = (line::FINGERPRINTS + 2 * slot, line::OFFSETS + 2 * slot);
            bytes[at..at + 2].copy_from_slice(&fingerprint.to_le_bytes());
            bytes[offset_at..offset_at + 2].copy_from_slice(&units.to_le_bytes());
        }
        bytes[line::SHIFT] = self.shift;
        bytes[line::BASE..].copy_from_slice(&self.base.to_le_bytes()[..6]);
        bytes
    }
}

/// A file with one partition.
#[derive(Clone, Debug)]
pub(crate) struct Craft {
    pub(crate) seed: u64,
    pub(crate) lines: Vec<Line>,
}

impl Craft {
    pub(crate) fn new(lines: usize) -> Self {
        Self { seed: 7, lines: vec![Line::default(); lines] }
    }

    /// Returns a key whose home is this line, different from all earlier ones.
    pub(crate) fn key(&self, line: usize, name: &str) -> Vec<u8> {
        let lines = self.lines.len() as u128;
        let home =
            |key: &str| (u128::from(xxh3_64_with_seed(key.as_bytes(), self.seed)) * lines) >> 64;
        let mut keys = (0..).map(|n| format!("{name} {n}"));
        keys.find(|key| home(key) == line as u128).expect("endless numbers").into_bytes()
    }

    /// Writes the file with a data section of `data_len` bytes. Zeros take no disk space.
    pub(crate) fn write(&self, path: &Path, data_len: u64) -> io::Result<()> {
        let data_start = data_start(self.lines.len() as u64);
        let file = File::create(path)?;
        file.set_len(data_start + data_len)?;
        let index: Vec<u8> = self.lines.iter().flat_map(|line| line.to_bytes(self.seed)).collect();
        let directory = Self::directory(&index, data_len);
        file.write_all_at(&self.header(data_len, &directory), 0)?;
        file.write_all_at(&directory, header::LEN as u64)?;
        file.write_all_at(&index, header::LEN as u64 + SECTION_ALIGN)?;
        for line in &self.lines {
            for (units, record) in &line.records {
                let at = line.base + (u64::from(*units) << line.shift);
                file.write_all_at(&record.bytes, data_start + at)?;
            }
        }
        Ok(())
    }

    /// The checksum of the data is not set: computing it would read the whole file.
    fn directory(index: &[u8], data_len: u64) -> [u8; directory::ENTRY_LEN] {
        let mut bytes = [0; directory::ENTRY_LEN];
        let used = data_len - record::MAX_SHORT_LEN as u64;
        bytes[directory::DATA_LEN..][..8].copy_from_slice(&used.to_le_bytes());
        bytes[directory::INDEX_HASH..][..8].copy_from_slice(&xxh3_64(index).to_le_bytes());
        bytes
    }

    fn header(&self, data_len: u64, directory: &[u8]) -> [u8; header::LEN] {
        let mut bytes = [0; header::LEN];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        let lines = self.lines.len() as u64;
        let tags = || self.lines.iter().flat_map(|line| &line.records).map(|(_, r)| r.bytes[0]);
        let shared = tags().filter(|tag| tag & record::SHARED != 0).count() as u64;
        let index_at = header::LEN as u64 + SECTION_ALIGN;
        put(header::MAGIC, &layout::MAGIC);
        put(header::VERSION_MAJOR, &layout::VERSION_MAJOR.to_le_bytes());
        put(header::HEADER_LEN, &(header::LEN as u32).to_le_bytes());
        put(header::LINES_PER_PARTITION, &(lines as u32).to_le_bytes());
        let has_shared = u32::from(shared > 0) * layout::flags::SHARED;
        put(header::FLAGS, &has_shared.to_le_bytes());
        for (at, number) in [
            (header::FILE_LEN, data_start(lines) + data_len),
            (header::SEED, self.seed),
            (header::ENTRIES, tags().count() as u64),
            (header::DICTIONARY, header::LEN as u64),
            (header::DIRECTORY, header::LEN as u64),
            (header::DIRECTORY + 8, directory.len() as u64),
            (header::INDEX, index_at),
            (header::INDEX + 8, lines * line::LEN as u64),
            (header::DATA, data_start(lines)),
            (header::DATA + 8, data_len),
            (header::DICTIONARY_HASH, xxh3_64(&[])),
            (header::DIRECTORY_HASH, xxh3_64(directory)),
            (header::SHARED_ENTRIES, shared),
        ] {
            put(at, &number.to_le_bytes());
        }
        for code in 0..16 {
            let count = tags().filter(|tag| tag & record::TYPE_MASK == code).count() as u64;
            put(header::ENTRIES_BY_TYPE + 8 * usize::from(code), &count.to_le_bytes());
        }
        let hash = xxh3_64(&bytes[..header::HASH]);
        bytes[header::HASH..].copy_from_slice(&hash.to_le_bytes());
        bytes
    }
}
