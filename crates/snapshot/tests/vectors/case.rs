//! A case: a good file with some changed bytes, and the expected results of readers.

use crate::anatomy::Anatomy;
use crate::good::Good;
use crate::json;
use nuthatch_snapshot::layout::{directory, header, line};
use std::fmt::Write as _;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The operation that detects the damage, with the code and the offset of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Opening fails.
    Open(&'static str, u64),
    /// Verification fails with `corrupt`.
    Verify(u64),
    /// Verification fails with `corrupt`, at the offset that our reader reports.
    Somewhere,
    /// No operation fails: the file is equivalent to its base.
    Nowhere,
}

/// The result of a lookup in a file whose verification fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Corrupt,
    Absent,
}

impl Answer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt",
            Self::Absent => "absent",
        }
    }
}

/// A case of the table.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) base: &'static str,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) shows: Shows,
    pub(crate) get: Option<(Vec<u8>, Answer)>,
}

/// A good file that cases are derived from.
pub(crate) struct Base {
    pub(crate) good: &'static Good,
    pub(crate) anatomy: Anatomy,
    pub(crate) cases: Vec<Case>,
}

impl Base {
    pub(crate) fn new(good: &'static Good, bytes: Vec<u8>) -> Self {
        Self { good, anatomy: Anatomy::new(bytes), cases: Vec::new() }
    }

    /// Adds a case: the good file after `change`.
    pub(crate) fn case(
        &mut self,
        name: impl Into<String>,
        shows: Shows,
        change: impl FnOnce(&mut Copy<'_>),
    ) -> &mut Case {
        let mut copy = Copy { of: &self.anatomy, bytes: self.anatomy.bytes.clone() };
        change(&mut copy);
        let (name, bytes) = (name.into(), copy.bytes.into());
        self.cases.push(Case { name, base: self.good.name, bytes, shows, get: None });
        self.cases.last_mut().expect("the case just added")
    }
}

impl Case {
    /// Sets the expected result of a lookup of this key.
    pub(crate) fn get(&mut self, key: &[u8], answer: Answer) {
        self.get = Some((key.to_vec(), answer));
    }

    /// Returns the case as a line of the table: its base, its length if that changes, the changed
    /// bytes, and the expected results.
    pub(crate) fn to_json(&self, good: &[u8], verify: Option<u64>) -> String {
        let mut row = format!("{{\"name\":{}", json::string(&self.name));
        let _ = write!(row, ",\"file\":\"v1/{}.nut\"", self.base);
        if self.bytes.len() != good.len() {
            let _ = write!(row, ",\"length\":{}", self.bytes.len());
        }
        let _ = write!(row, ",\"patch\":{}", json::list(self.patch(good).into_iter()));
        self.expectations(&mut row, verify);
        row
    }

    /// Returns the case as a line of the table, for the committed file at this path.
    pub(crate) fn to_json_of_file(&self, path: &str, verify: Option<u64>) -> String {
        let mut row = format!("{{\"name\":{},\"file\":\"{path}\"", json::string(&self.name));
        let _ = write!(row, ",\"of\":\"v1/{}.nut\"", self.base);
        self.expectations(&mut row, verify);
        row
    }

    fn expectations(&self, row: &mut String, verify: Option<u64>) {
        let error = |code: &str, at: u64| format!("{{\"code\":\"{code}\",\"offset\":{at}}}");
        if let Shows::Open(code, at) = self.shows {
            let _ = write!(row, ",\"open\":{}", error(code, at));
        }
        if let Some(at) = verify {
            let _ = write!(row, ",\"verify\":{}", error("corrupt", at));
        }
        if let Some((key, answer)) = &self.get {
            let (key, answer) = (json::key(key), answer.name());
            let _ = write!(row, ",\"get\":{{\"key\":{key},\"answer\":\"{answer}\"}}");
        }
        row.push('}');
    }

    /// Returns the runs of bytes that differ from the good file. Bytes beyond its end count as
    /// zeros.
    fn patch(&self, good: &[u8]) -> Vec<String> {
        let differs = |at: usize| self.bytes[at] != good.get(at).copied().unwrap_or(0);
        let mut runs = Vec::new();
        let mut at = 0;
        while at < self.bytes.len() {
            let len = (at..self.bytes.len()).take_while(|at| differs(*at)).count();
            if len > 0 {
                let hex = self.bytes[at..at + len].iter().map(|byte| format!("{byte:02x}"));
                runs.push(format!("{{\"at\":{at},\"hex\":\"{}\"}}", hex.collect::<String>()));
            }
            at += len + 1;
        }
        runs
    }
}

/// A copy of a good file, to be damaged.
pub(crate) struct Copy<'a> {
    of: &'a Anatomy,
    pub(crate) bytes: Vec<u8>,
}

impl Copy<'_> {
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) -> &mut Self {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Flips one bit, counted from the lowest bit of the byte at `at`.
    pub(crate) fn flip(&mut self, at: usize, bit: usize) -> &mut Self {
        self.bytes[at + bit / 8] ^= 1 << (bit % 8);
        self
    }

    /// Sets every overflow bit of every line.
    pub(crate) fn overflow_everywhere(&mut self) {
        for at in self.of.lines() {
            self.put(at + line::OVERFLOW, &[0xff]);
        }
    }

    /// Corrects all checksums.
    pub(crate) fn mend(&mut self) {
        for partition in 0..self.of.partitions() {
            self.mend_partition(partition);
        }
        self.mend_directory();
    }

    fn mend_partition(&mut self, partition: usize) {
        let entry = self.of.entry(partition);
        let field = |at: usize| {
            let bytes = self.bytes[at..at + 8].try_into().expect("eight bytes");
            usize::try_from(u64::from_le_bytes(bytes)).expect("64 bits")
        };
        let start = self.of.data().start.saturating_add(field(entry + directory::DATA_OFFSET));
        let data = start..start.saturating_add(field(entry + directory::DATA_LEN));
        let hashes =
            [(directory::INDEX_HASH, self.of.index(partition)), (directory::DATA_HASH, data)]
                .map(|(field, range)| (field, self.bytes.get(range).map(xxh3_64)));
        for (field, hash) in hashes {
            if let Some(hash) = hash {
                self.put(entry + field, &hash.to_le_bytes());
            }
        }
    }

    /// Corrects the checksums of the directory and of the header.
    pub(crate) fn mend_directory(&mut self) {
        let hash = xxh3_64(&self.bytes[self.of.section(header::DIRECTORY)]);
        self.put(header::DIRECTORY_HASH, &hash.to_le_bytes());
        self.mend_header();
    }

    /// Corrects the checksum of the header.
    pub(crate) fn mend_header(&mut self) {
        let hash = xxh3_64(&self.bytes[..header::HASH]);
        self.put(header::HASH, &hash.to_le_bytes());
    }
}
