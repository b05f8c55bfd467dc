//! Lookups of one key.
//!
//! A lookup first tries the fast path: the home line of the key and the first record there whose
//! fingerprint matches. The slow path searches every line that can hold the key, decodes every kind
//! of record, and names damage. It is out of line to keep the fast path small: the fewer
//! instructions a lookup runs, the more lookups the processor executes at once, and the more their
//! memory latencies overlap.

use super::file::SnapshotFile;
use super::snapshot::Snapshot;
use super::stored::StoredValue;
use crate::error::{Error, Result};
use crate::format::hash::KeyHash;
use crate::format::header::Header;
use crate::format::line::Line;
use crate::format::record::{DataSection, InvalidRecord, Record, long_value, plain_value};
use crate::values::{CowValue, Value, ValueType};

impl Snapshot {
    /// Returns the value of a key, or `None` for a missing key.
    ///
    /// The value borrows from the file. A compressed value is decompressed and owned, which costs
    /// the decompression, a copy and two allocations, and above 1 MiB also the allocation of a
    /// buffer. To read many compressed values, reuse one buffer: call [`StoredValue::decompress`]
    /// on the result of [`find`](Self::find).
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] or [`Error::Unreadable`] if the lookup reads damaged bytes.
    #[inline(always)]
    pub fn get(&self, key: &[u8]) -> Result<Option<CowValue<'_>>> {
        match self.one_file() {
            Some(file) => file.get_hashed(key, file.hash(key)),
            None => self.get_in_set(key),
        }
    }

    /// Returns the stored value of a key without decoding it, or `None` for a missing key. Does not
    /// validate the bytes of the value: reading the value does.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] or [`Error::Unreadable`] if the lookup reads damaged bytes.
    #[inline(always)]
    pub fn find(&self, key: &[u8]) -> Result<Option<StoredValue<'_>>> {
        match self.one_file() {
            Some(file) => file.find_hashed(key, file.hash(key)),
            None => self.find_in_set(key),
        }
    }

    /// Returns whether the key exists.
    ///
    /// # Errors
    /// Returns the same errors as [`find`](Self::find).
    #[inline(always)]
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.find(key)?.is_some())
    }

    /// Returns the type of a key's value, or `None` for a missing key.
    ///
    /// # Errors
    /// Returns the same errors as [`find`](Self::find).
    #[inline(always)]
    pub fn value_type(&self, key: &[u8]) -> Result<Option<ValueType>> {
        Ok(self.find(key)?.map(|stored| stored.value_type()))
    }

    /// Does the same as [`get`](Self::get), in a set. Out of line, to keep lookups in one file
    /// small.
    #[inline(never)]
    fn get_in_set(&self, key: &[u8]) -> Result<Option<CowValue<'_>>> {
        let (file, hash) = self.shard_of(key);
        file.get_hashed(key, hash)
    }

    /// Does the same as [`find`](Self::find), in a set.
    #[inline(never)]
    fn find_in_set(&self, key: &[u8]) -> Result<Option<StoredValue<'_>>> {
        let (file, hash) = self.shard_of(key);
        file.find_hashed(key, hash)
    }
}

impl SnapshotFile {
    /// Returns the hash of a key.
    #[inline(always)]
    pub(super) fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash::of(key, self.header.seed)
    }

    /// Does the same as [`Snapshot::get`] for a key with this hash.
    #[inline(always)]
    fn get_hashed(&self, key: &[u8], hash: KeyHash) -> Result<Option<CowValue<'_>>> {
        self.value_of(self.find_fast(key, hash, None), key, hash)
    }

    /// Does the same as [`Snapshot::find`] for a key with this hash.
    #[inline(always)]
    pub(super) fn find_hashed(&self, key: &[u8], hash: KeyHash) -> Result<Option<StoredValue<'_>>> {
        self.stored_value_of(self.find_fast(key, hash, None), key, hash)
    }

    /// Tries the fast path: reads the home line, and the first record there with the key's
    /// fingerprint. If `code` is given, the value must have this type code.
    #[inline(always)]
    pub(super) fn find_fast(&self, key: &[u8], hash: KeyHash, code: Option<u8>) -> FastResult<'_> {
        let line = self.home_line(hash);
        match line.matches(hash.fingerprint()).next() {
            Some(slot) => self.read_fast(line.record(slot), key, code),
            None if line.overflow() & hash.overflow_bit() == 0 => FastResult::Absent,
            None => FastResult::Undecided,
        }
    }

    /// Does the same as [`find_fast`](Self::find_fast), but decides only plain records.
    #[inline(always)]
    pub(super) fn find_usual(&self, key: &[u8], hash: KeyHash, code: Option<u8>) -> FastResult<'_> {
        let line = self.home_line(hash);
        match line.matches(hash.fingerprint()).next() {
            Some(slot) => {
                let window = self.map.window(line.record(slot));
                let found = window.and_then(|window| plain_value(window, key, code));
                found.map_or(FastResult::Undecided, |(code, value)| FastResult::Found(code, value))
            }
            None if line.overflow() & hash.overflow_bit() == 0 => FastResult::Absent,
            None => FastResult::Undecided,
        }
    }

    /// Returns the home line of a key.
    #[inline(always)]
    pub(super) fn home_line(&self, hash: KeyHash) -> Line<'_> {
        Line::new(self.map.line_at(hash.0))
    }

    /// Reads the record at an offset in the data section, if it is plain or long and has this key.
    #[inline(always)]
    pub(super) fn read_fast(&self, at: u64, key: &[u8], code: Option<u8>) -> FastResult<'_> {
        let Some(window) = self.map.window(at) else { return FastResult::Undecided };
        match plain_value(window, key, code) {
            Some((code, value)) => FastResult::Found(code, value),
            // Lists often have long lengths, so a lookup of a list avoids the call.
            None if code.is_some_and(ValueType::is_list_code) => self.read_long(at, key, code),
            None => self.read_long_out_of_line(at, key, code),
        }
    }

    /// Calls [`read_long`](Self::read_long) out of line: records with short lengths do not need it.
    #[inline(never)]
    fn read_long_out_of_line(&self, at: u64, key: &[u8], code: Option<u8>) -> FastResult<'_> {
        self.read_long(at, key, code)
    }

    /// Reads the record at an offset in the data section, if it has long lengths and this key.
    #[inline(always)]
    fn read_long(&self, at: u64, key: &[u8], code: Option<u8>) -> FastResult<'_> {
        let found = self.map.window(at).and_then(|window| {
            let (code, range) = long_value(window, at, key, code)?;
            Some((code, self.map.data().get(range)?))
        });
        found.map_or(FastResult::Undecided, |(code, value)| FastResult::Found(code, value))
    }

    /// Returns the stored value for a result of the fast path. Takes the slow path if necessary.
    #[inline(always)]
    pub(super) fn stored_value_of<'a>(
        &'a self,
        fast: FastResult<'a>,
        key: &[u8],
        hash: KeyHash,
    ) -> Result<Option<StoredValue<'a>>> {
        match fast {
            FastResult::Found(code, value) => match ValueType::from_code(code) {
                Some(value_type) => Ok(Some(StoredValue::plain(self, value_type, value))),
                None => self.find_slow(key, hash),
            },
            FastResult::Absent => Ok(None),
            FastResult::Undecided => self.find_slow(key, hash),
        }
    }

    /// Returns the value for a result of the fast path. The inlined part handles only borrowed
    /// values and no errors. Compressed and damaged values take the slow path, so that the caller's
    /// result stays in registers.
    #[inline(always)]
    pub(super) fn value_of<'a>(
        &'a self,
        fast: FastResult<'a>,
        key: &[u8],
        hash: KeyHash,
    ) -> Result<Option<CowValue<'a>>> {
        let value = match fast.decode() {
            Ok(value) => value.map(CowValue::Borrowed),
            // `?` moves the result out of the memory that the call writes to.
            Err(Undecided) => self.get_slow(key, hash)?,
        };
        Ok(value)
    }

    /// Returns the value of a key by the slow path.
    #[inline(never)]
    fn get_slow(&self, key: &[u8], hash: KeyHash) -> Result<Option<CowValue<'_>>> {
        self.find_slow(key, hash)?.map(|stored| stored.value()).transpose()
    }

    /// Returns the stored value of a key by the slow path: searches every line that can hold the
    /// key, and decodes every kind of record.
    #[inline(never)]
    pub(super) fn find_slow(&self, key: &[u8], hash: KeyHash) -> Result<Option<StoredValue<'_>>> {
        let mut probe = self.probe(hash);
        loop {
            let line = self.line(probe.line())?;
            for slot in line.matches(hash.fingerprint()) {
                let record = self.record(line.record(slot))?;
                if record.key == key {
                    return Ok(Some(StoredValue::new(self, &record)));
                }
            }
            if line.overflow() & hash.overflow_bit() == 0 || !probe.advance() {
                return Ok(None);
            }
        }
    }

    /// Returns the probe sequence of a key.
    pub(super) fn probe(&self, hash: KeyHash) -> Probe {
        let Header { partition_bits, lines_per_partition, max_probe, .. } = self.header;
        let lines = u64::from(lines_per_partition);
        let first = hash.partition(partition_bits) * lines;
        let line = hash.line(lines << partition_bits);
        Probe { first, line, end: first + lines, remaining: max_probe }
    }

    /// Returns the probe sequence of the keys with this home line.
    pub(super) fn probe_from(&self, line: u64) -> Probe {
        let lines = u64::from(self.header.lines_per_partition);
        let first = line / lines * lines;
        Probe { first, line, end: first + lines, remaining: self.header.max_probe }
    }

    /// Returns a line of the index.
    pub(super) fn line(&self, line: u64) -> Result<Line<'_>> {
        match self.map.index().get(line as usize) {
            Some(bytes) => Ok(Line::new(bytes)),
            None => Err(self.corrupt(self.header.index.offset, "a line of the index", line)),
        }
    }

    /// Decodes the record at an offset in the data section.
    pub(super) fn record(&self, at: u64) -> Result<Record<'_>> {
        DataSection(self.map.data()).record(at).map_err(|invalid| self.corrupt_record(&invalid))
    }

    #[cold]
    fn corrupt_record(&self, invalid: &InvalidRecord) -> Error {
        let offset = self.header.data.offset.saturating_add(invalid.offset);
        self.corrupt(offset, invalid.expected, invalid.found)
    }
}

/// The result of the fast path.
#[derive(Clone, Copy)]
pub(super) enum FastResult<'a> {
    /// The type code and the stored bytes of the value. Neither is validated.
    Found(u8, &'a [u8]),
    /// The key does not exist.
    Absent,
    /// The fast path cannot decide; [`SnapshotFile::find_slow`] can.
    Undecided,
}

impl<'a> FastResult<'a> {
    /// Decodes the value. Fails if the slow path must read it or name its damage.
    #[inline(always)]
    fn decode(self) -> std::result::Result<Option<Value<'a>>, Undecided> {
        match self {
            Self::Found(code, bytes) => {
                let value_type = ValueType::from_code(code).ok_or(Undecided)?;
                Value::from_bytes(value_type, bytes).map(Some).map_err(|_| Undecided)
            }
            Self::Absent => Ok(None),
            Self::Undecided => Err(Undecided),
        }
    }
}

/// The fast path did not decide a lookup.
struct Undecided;

/// The probe sequence of a key: its home line, then the following lines, from the end of the
/// partition around to its start.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    /// First line of the partition.
    first: u64,
    /// Current line.
    line: u64,
    /// Line after the last of the partition.
    end: u64,
    /// Number of lines that may still follow.
    remaining: u32,
}

impl Probe {
    /// Returns the number of the current line.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Moves to the next line. Returns `false` after `max_probe` moves, the limit of the file.
    pub(super) fn advance(&mut self) -> bool {
        if self.remaining == 0 {
            return false;
        }
        self.remaining -= 1;
        self.line += 1;
        if self.line == self.end {
            self.line = self.first;
        }
        true
    }
}
