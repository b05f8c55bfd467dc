//! An open snapshot: lookups, one at a time.

use crate::bucket::Line;
use crate::compression::Dictionary;
use crate::directory::DirectoryEntry;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::header::{Header, RawHeader, corrupt};
use crate::layout::header as header_at;
use crate::map::{Map, Residency};
use crate::owned::CowValue;
use crate::record::{DataSection, Flaw, Record, long_value, plain_value};
use crate::stored::Stored;
use crate::value::{Value, ValueType};
use std::fmt;
use std::path::Path;

/// How to open a snapshot.
///
/// ```no_run
/// use nuthatch_snapshot::{OpenOptions, Residency};
/// let snapshot = OpenOptions::new().residency(Residency::HugePages).open("features.nut")?;
/// # Ok::<(), nuthatch_snapshot::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    residency: Residency,
    lock: bool,
}

impl OpenOptions {
    /// The defaults: mapped on demand, not locked.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the bytes live.
    #[must_use]
    pub fn residency(mut self, residency: Residency) -> Self {
        self.residency = residency;
        self
    }

    /// Whether the bytes are locked in memory, so that they are never paged out. Needs the
    /// privilege or the limit for it (`RLIMIT_MEMLOCK`).
    #[must_use]
    pub fn lock(mut self, lock: bool) -> Self {
        self.lock = lock;
        self
    }

    /// Opens a snapshot. Reads the header alone, whatever the size of the file.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Snapshot> {
        Snapshot::of(Map::open(path.as_ref(), self.residency, self.lock)?)
    }
}

/// An open snapshot: an immutable map from keys to typed values, read in place.
///
/// Lookups write nothing, so any number of threads share one snapshot by reference. A published
/// file must never be written to or truncated while it is open anywhere; publish a new one by
/// renaming it over the old, as the writer does, and the open one stays as it was.
pub struct Snapshot {
    pub(crate) map: Map,
    pub(crate) header: Header,
    pub(crate) dictionary: Dictionary,
}

impl Snapshot {
    /// Opens a snapshot with the default [`OpenOptions`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens a snapshot that is in memory already, part of the program, say: copies it, since a
    /// snapshot is read in place and its lists of numbers must be aligned.
    ///
    /// ```
    /// # use nuthatch_snapshot::Snapshot;
    /// # macro_rules! include_bytes { ($path:literal) => { b"not really" } }
    /// const CODES: &[u8] = include_bytes!("codes.nut");
    /// let codes = Snapshot::from_bytes(CODES);
    /// # assert_eq!(codes.map_err(|error| error.code()).err(), Some("not-a-snapshot"));
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::of(Map::of_bytes(bytes))
    }

    fn of(mut map: Map) -> Result<Self> {
        let bytes = map.bytes();
        let read = RawHeader::new(&bytes[..bytes.len().min(header_at::LEN)], map.path())
            .and_then(|raw| raw.validate(bytes.len() as u64))
            .and_then(|header| Ok((Dictionary::new(&map, &header)?, header)));
        // Zeros that stand for a page that is gone are no damage of the file.
        map.check_readable()?;
        let (dictionary, header) = read?;
        map.set_sections(header.index, header.data);
        Ok(Self { map, header, dictionary })
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.header.entries
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.header.entries == 0
    }

    /// The path this snapshot was opened with; `(memory)` for one that was opened from bytes.
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// Returns the value of a key, or `None` for a missing key. Fails on a damaged file.
    ///
    /// The value is borrowed from the file. A compressed value is decompressed and owned: that
    /// costs the decompression, a copy and two allocations. To read many compressed values, reuse
    /// one buffer: [`Stored::decompress`] on the result of [`find`](Self::find).
    #[inline(always)]
    pub fn get(&self, key: &[u8]) -> Result<Option<CowValue<'_>>> {
        let hash = KeyHash::of(key, self.header.seed);
        self.read(self.quick_find(key, hash, None), key, hash)
    }

    /// Finds the value of a key as it lies in the file, without reading it.
    #[inline(always)]
    pub fn find(&self, key: &[u8]) -> Result<Option<Stored<'_>>> {
        let hash = KeyHash::of(key, self.header.seed);
        self.answer(self.quick_find(key, hash, None), key, hash)
    }

    /// Looks at the home line, and at the first record there with the key's fingerprint.
    #[inline(always)]
    pub(crate) fn quick_find(&self, key: &[u8], hash: KeyHash, code: Option<u8>) -> Quick<'_> {
        let line = self.home_line(hash);
        match line.matches(hash.fingerprint()).next() {
            Some(slot) => self.quick_read(line.record(slot), key, code),
            None if line.overflow() & hash.overflow_bit() == 0 => Quick::Absent,
            None => Quick::Unsure,
        }
    }

    /// The line of the index a key lies in unless that was full.
    #[inline(always)]
    pub(crate) fn home_line(&self, hash: KeyHash) -> Line<'_> {
        Line::new(self.map.line_at(hash.0))
    }

    /// Looks at one record.
    #[inline(always)]
    pub(crate) fn quick_read(&self, at: u64, key: &[u8], code: Option<u8>) -> Quick<'_> {
        let Some(window) = self.map.window(at) else { return Quick::Unsure };
        match plain_value(window, key, code) {
            Some((code, value)) => Quick::Found(code, value),
            // Asked for a list, whose lengths may well be long, there is no call.
            None if code.is_some_and(ValueType::is_list_code) => self.read_long(at, key, code),
            None => self.quick_read_long(at, key, code),
        }
    }

    /// Looks at one record whose lengths may be long. Out of line, as nothing here is needed for
    /// short ones.
    #[inline(never)]
    fn quick_read_long(&self, at: u64, key: &[u8], code: Option<u8>) -> Quick<'_> {
        self.read_long(at, key, code)
    }

    #[inline(always)]
    fn read_long(&self, at: u64, key: &[u8], code: Option<u8>) -> Quick<'_> {
        let found = self.map.window(at).and_then(|window| {
            let (code, range) = long_value(window, at, key, code)?;
            Some((code, self.map.data().get(range)?))
        });
        found.map_or(Quick::Unsure, |(code, value)| Quick::Found(code, value))
    }

    /// What a lookup answers after a quick look.
    #[inline(always)]
    pub(crate) fn answer<'a>(
        &'a self,
        quick: Quick<'a>,
        key: &[u8],
        hash: KeyHash,
    ) -> Result<Option<Stored<'a>>> {
        match quick {
            Quick::Found(code, value) => match ValueType::from_code(code) {
                Some(value_type) => Ok(Some(Stored::plain(self, value_type, value))),
                None => self.find_anywhere(key, hash),
            },
            Quick::Absent => Ok(None),
            Quick::Unsure => self.find_anywhere(key, hash),
        }
    }

    /// Returns the value of a key after a quick look. The common case handles only borrowed values
    /// and no errors: a compressed or damaged value is read out of line, so that the caller's
    /// result stays in registers.
    #[inline(always)]
    pub(crate) fn read<'a>(
        &'a self,
        quick: Quick<'a>,
        key: &[u8],
        hash: KeyHash,
    ) -> Result<Option<CowValue<'a>>> {
        let value = match quick.value() {
            Ok(value) => value.map(CowValue::Borrowed),
            // `?` moves the result out of the memory that the call writes to.
            Err(Unsure) => self.read_anywhere(key, hash)?,
        };
        Ok(value)
    }

    /// Returns the value of a key after a whole lookup.
    #[inline(never)]
    fn read_anywhere(&self, key: &[u8], hash: KeyHash) -> Result<Option<CowValue<'_>>> {
        self.find_anywhere(key, hash)?.map(|stored| stored.value()).transpose()
    }

    /// A whole lookup: every line the key can be in, every kind of record. Out of line, so that the
    /// common case above stays small: the less code a lookup runs, the more lookups the processor
    /// has in flight, and their waits for memory overlap.
    #[inline(never)]
    pub(crate) fn find_anywhere(&self, key: &[u8], hash: KeyHash) -> Result<Option<Stored<'_>>> {
        let mut probe = self.probe(hash);
        loop {
            let line = self.line(probe.line())?;
            for slot in line.matches(hash.fingerprint()) {
                let record = self.record(line.record(slot))?;
                if record.key == key {
                    return Ok(Some(Stored::new(self, &record)));
                }
            }
            if line.overflow() & hash.overflow_bit() == 0 || !probe.advance() {
                return Ok(None);
            }
        }
    }

    /// Whether the key is there.
    #[inline(always)]
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.find(key)?.is_some())
    }

    /// The type of a key's value.
    #[inline(always)]
    pub fn value_type(&self, key: &[u8]) -> Result<Option<ValueType>> {
        Ok(self.find(key)?.map(|stored| stored.value_type()))
    }

    pub(crate) fn probe(&self, hash: KeyHash) -> Probe {
        let Header { partition_bits, lines_per_partition, max_probe, .. } = self.header;
        let lines = u64::from(lines_per_partition);
        let first = hash.partition(partition_bits) * lines;
        let line = hash.line(lines << partition_bits);
        Probe { first, line, end: first + lines, left: max_probe }
    }

    /// A line of the index.
    pub(crate) fn line(&self, line: u64) -> Result<Line<'_>> {
        match self.map.index().get(line as usize) {
            Some(bytes) => Ok(Line::new(bytes)),
            None => Err(self.corrupt(self.header.index.offset, "a line of the index", line)),
        }
    }

    pub(crate) fn record(&self, at: u64) -> Result<Record<'_>> {
        DataSection(self.map.data()).record(at).map_err(|flaw| self.flaw(&flaw))
    }

    #[cold]
    fn flaw(&self, flaw: &Flaw) -> Error {
        let offset = self.header.data.offset.saturating_add(flaw.offset);
        self.corrupt(offset, flaw.expected, flaw.found)
    }

    #[cold]
    pub(crate) fn corrupt(
        &self,
        offset: u64,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        match self.check_readable() {
            Ok(()) => corrupt(self.path(), offset, expected, found),
            Err(unreadable) => unreadable,
        }
    }

    /// Fails with [`Error::Unreadable`] if a page of the file could not be read since it was
    /// opened: the file was truncated, or the device failed. What was read before a call that
    /// succeeds was read from the file.
    ///
    /// Only builds with the feature `sigbus` detect that; in others this always succeeds, because
    /// such a page ends the process. The call is one load of memory, so it can follow every lookup.
    #[inline]
    pub fn check_readable(&self) -> Result<()> {
        self.map.check_readable()
    }

    pub(crate) fn directory_entry(&self, partition: u64) -> DirectoryEntry {
        DirectoryEntry::at(self.map.bytes(), self.header.directory, partition)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("path", &self.path())
            .field("entries", &self.len())
            .finish_non_exhaustive()
    }
}

/// What a look at the most likely place of a key tells.
#[derive(Clone, Copy)]
pub(crate) enum Quick<'a> {
    /// A type code, unchecked, and the bytes of the value.
    Found(u8, &'a [u8]),
    /// The key is not there.
    Absent,
    /// Only [`Snapshot::find_anywhere`] can tell.
    Unsure,
}

impl<'a> Quick<'a> {
    /// Reads the value. Fails if only [`Snapshot::find_anywhere`] can read it or name its damage.
    #[inline(always)]
    fn value(self) -> std::result::Result<Option<Value<'a>>, Unsure> {
        match self {
            Self::Found(code, bytes) => {
                let value_type = ValueType::from_code(code).ok_or(Unsure)?;
                Value::from_bytes(value_type, bytes).map(Some).map_err(|_| Unsure)
            }
            Self::Absent => Ok(None),
            Self::Unsure => Err(Unsure),
        }
    }
}

/// Says that a quick look did not suffice.
struct Unsure;

/// The lines to look at for one key: its home, then the next ones, around its partition.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    first: u64,
    line: u64,
    end: u64,
    left: u32,
}

impl Probe {
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Moves to the next line; false when the longest probe of the file is used up.
    pub(crate) fn advance(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.line += 1;
        if self.line == self.end {
            self.line = self.first;
        }
        true
    }
}
