//! A look at every byte: checksums, offsets, values, and that every entry is found by its key.

use crate::bucket::Line;
use crate::compression::Scratch;
use crate::error::Result;
use crate::hash::{KeyHash, checksum};
use crate::header::{Section, wrong_checksum};
use crate::layout::{SECTION_ALIGN, directory, header as header_at, line, record};
use crate::parallel;
use crate::reader::Snapshot;
use crate::record::Record;
use crate::stored::Stored;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

impl Snapshot {
    /// Checks everything in the file, on all cores: the checksums, every offset, every value, and
    /// that every entry is found by its key.
    ///
    /// Opening checks the header alone, and lookups what they touch. A file that verifies answers
    /// every lookup without an error.
    pub fn verify(&self) -> Result<()> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        self.verify_with(threads, |_, _| ())
    }

    /// As [`verify`](Self::verify), with the number of threads, and a function that is told now and
    /// then how many entries are done, and of how many, from any of them.
    pub fn verify_with(&self, threads: usize, progress: impl Fn(u64, u64) + Sync) -> Result<()> {
        self.verify_sections()?;
        self.verify_directory()?;
        let done = AtomicU64::new(0);
        let totals = parallel::map(threads.max(1), 0..self.header.partitions(), |partition| {
            let totals = Partition::of(self, partition).verify()?;
            let done = done.fetch_add(totals.entries, Ordering::Relaxed) + totals.entries;
            progress(done, self.header.entries);
            Ok(totals)
        })?;
        self.verify_totals(&totals)?;
        self.check_readable()
    }

    /// Between sections there are zeros, and only as many as the alignment asks for.
    fn verify_sections(&self) -> Result<()> {
        let header = &self.header;
        for (section, next) in [
            (header.dictionary, header.directory.offset),
            (header.directory, header.index.offset),
            (header.index, header.data.offset),
        ] {
            self.verify_zeros(section.end(), next)?;
        }
        let dictionary = self.section(header.dictionary);
        self.verify_hash(
            header_at::DICTIONARY_HASH as u64,
            "the dictionary",
            (checksum(dictionary), header.dictionary_hash),
        )
    }

    /// Checks the checksum of the directory.
    pub(crate) fn verify_directory_hash(&self) -> Result<()> {
        let header = &self.header;
        let found = checksum(self.section(header.directory));
        let at = header_at::DIRECTORY_HASH as u64;
        self.verify_hash(at, "the directory", (found, header.directory_hash))
    }

    /// Checks that the data of the partitions lies in order, without gaps but for the alignment.
    fn verify_directory(&self) -> Result<()> {
        let header = &self.header;
        self.verify_directory_hash()?;
        let mut expected = 0;
        for partition in 0..header.partitions() {
            let Section { offset, len } = self.directory_entry(partition).data;
            let at = header.directory.offset + partition * directory::ENTRY_LEN as u64;
            if offset != expected {
                let expected = format!("the data of partition {partition} at {expected}");
                return Err(self.corrupt(at, expected, offset));
            }
            let room = header.data.len.saturating_sub(offset);
            if len > room {
                let expected = format!("at most {room} bytes of data in partition {partition}");
                return Err(self.corrupt(at + directory::DATA_LEN as u64, expected, len));
            }
            expected = (offset + len).next_multiple_of(SECTION_ALIGN);
            let end = header.data.offset + offset + len;
            self.verify_zeros(end, (header.data.offset + expected).min(header.data.end()))?;
        }
        let len = (expected + record::SHORT_MOST as u64).next_multiple_of(SECTION_ALIGN);
        if len != header.data.len {
            let at = header_at::DATA as u64 + 8;
            let expected = format!("{} bytes of data", header.data.len);
            return Err(self.corrupt(at, expected, len));
        }
        self.verify_zeros(header.data.offset + expected, header.data.end())
    }

    /// Checks the checksums of a partition: of its lines, and of its data.
    pub(crate) fn verify_partition_hashes(&self, partition: u64) -> Result<()> {
        let header = &self.header;
        let entry = self.directory_entry(partition);
        let at = header.directory.offset + partition * directory::ENTRY_LEN as u64;
        let lines = self.lines_of(partition);
        let index = Section {
            offset: header.index.offset + lines.start * line::LEN as u64,
            len: (lines.end - lines.start) * line::LEN as u64,
        };
        let found = checksum(self.section(index));
        let what = format!("the index of partition {partition}");
        let index_hash = at + directory::INDEX_HASH as u64;
        self.verify_hash(index_hash, &what, (found, entry.index_hash))?;
        let Section { offset, len } = entry.data;
        if offset > header.data.len || len > header.data.len - offset {
            let expected = format!("data of partition {partition} within {}", header.data.len);
            return Err(self.corrupt(at, expected, format!("{len} bytes at {offset}")));
        }
        let data = Section { offset: header.data.offset + offset, len };
        let found = checksum(self.section(data));
        let what = format!("the data of partition {partition}");
        self.verify_hash(at + directory::DATA_HASH as u64, &what, (found, entry.data_hash))
    }

    /// Returns the numbers of the lines of a partition.
    pub(crate) fn lines_of(&self, partition: u64) -> Range<u64> {
        let lines_each = u64::from(self.header.lines_per_partition);
        partition * lines_each..(partition + 1) * lines_each
    }

    fn verify_zeros(&self, from: u64, to: u64) -> Result<()> {
        let bytes = self.section(Section { offset: from, len: to.saturating_sub(from) });
        match bytes.iter().position(|&byte| byte != 0) {
            Some(at) => Err(self.corrupt(from + at as u64, "a zero", bytes[at])),
            None => Ok(()),
        }
    }

    /// Compares the checksum of something with the one that is stored at `at`.
    fn verify_hash(&self, at: u64, what: &str, (found, stored): (u64, u64)) -> Result<()> {
        self.check_readable()?;
        if found == stored {
            return Ok(());
        }
        Err(wrong_checksum(self.path(), at, what, (stored, found)))
    }

    fn verify_totals(&self, partitions: &[Totals]) -> Result<()> {
        let mut sum = Totals::default();
        for totals in partitions {
            sum.add(totals);
        }
        let header = &self.header;
        for (at, what, stored, found) in [
            (header_at::ENTRIES, "entries", header.entries, sum.entries),
            (header_at::KEY_BYTES, "bytes of keys", header.key_bytes, sum.key_bytes),
            (header_at::VALUE_BYTES, "bytes of values", header.value_bytes, sum.value_bytes),
            (
                header_at::STORED_VALUE_BYTES,
                "bytes of stored values",
                header.stored_value_bytes,
                sum.stored_value_bytes,
            ),
            (header_at::SHARED_ENTRIES, "shared entries", header.shared_entries, sum.shared),
            (
                header_at::COMPRESSED_ENTRIES,
                "compressed entries",
                header.compressed_entries,
                sum.compressed,
            ),
        ] {
            if found != stored {
                return Err(self.corrupt(at as u64, format!("{stored} {what}"), found));
            }
        }
        if header.entries_by_type != sum.by_type {
            let at = header_at::ENTRIES_BY_TYPE as u64;
            let expected = format!("entries by type {:?}", header.entries_by_type);
            return Err(self.corrupt(at, expected, format!("{:?}", sum.by_type)));
        }
        Ok(())
    }

    /// Where these bytes of the file lie in it.
    fn offset_of(&self, part: &[u8]) -> u64 {
        (part.as_ptr().addr() - self.map.bytes().as_ptr().addr()) as u64
    }

    fn section(&self, section: Section) -> &[u8] {
        &self.map.bytes()[section.offset as usize..section.end() as usize]
    }
}

/// What the header tells, counted.
#[derive(Clone, Debug, Default)]
struct Totals {
    entries: u64,
    key_bytes: u64,
    value_bytes: u64,
    stored_value_bytes: u64,
    shared: u64,
    compressed: u64,
    by_type: [u64; 16],
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.key_bytes += other.key_bytes;
        self.value_bytes += other.value_bytes;
        self.stored_value_bytes += other.stored_value_bytes;
        self.shared += other.shared;
        self.compressed += other.compressed;
        for (sum, count) in self.by_type.iter_mut().zip(other.by_type) {
            *sum += count;
        }
    }
}

/// One partition under verification.
struct Partition<'a> {
    snapshot: &'a Snapshot,
    number: u64,
    /// Its part of the data section.
    data: Section,
    totals: Totals,
    scratch: Scratch,
    /// Where the last record ended, in the data section.
    end: u64,
}

impl<'a> Partition<'a> {
    fn of(snapshot: &'a Snapshot, number: u64) -> Self {
        let data = snapshot.directory_entry(number).data;
        let (totals, scratch) = (Totals::default(), Scratch::new());
        Self { snapshot, number, data, totals, scratch, end: data.offset }
    }

    fn verify(mut self) -> Result<Totals> {
        let Self { snapshot, number, data, .. } = self;
        snapshot.verify_partition_hashes(number)?;
        for number in snapshot.lines_of(number) {
            self.verify_line(number)?;
        }
        self.verify_gap(data.end())?;
        snapshot.check_readable()?;
        Ok(self.totals)
    }

    fn verify_line(&mut self, number: u64) -> Result<()> {
        let snapshot = self.snapshot;
        let line = snapshot.line(number)?;
        let at = snapshot.header.index.offset + number * line::LEN as u64;
        if line.shift() > line::MAX_SHIFT {
            let expected = format!("a shift of at most {}", line::MAX_SHIFT);
            return Err(snapshot.corrupt(at + line::SHIFT as u64, expected, line.shift()));
        }
        let used = line.used().count();
        if !line.used().eq(0..used) {
            return Err(snapshot.corrupt(at, "slots in use before those not in use", "a gap"));
        }
        if (used..line::SLOTS).any(|slot| line.record(slot) != line.base()) {
            let at = at + (line::OFFSETS + 2 * used) as u64;
            return Err(snapshot.corrupt(at, "zero offsets in slots not in use", "another"));
        }
        for slot in line.used() {
            self.verify_entry(number, line, slot)?;
        }
        Ok(())
    }

    fn verify_entry(&mut self, number: u64, line: Line<'_>, slot: usize) -> Result<()> {
        let snapshot = self.snapshot;
        let begin = line.record(slot);
        let at = snapshot.header.index.offset + number * line::LEN as u64;
        let field = at + (line::OFFSETS + 2 * slot) as u64;
        if begin < self.end || begin >= self.data.end() {
            let expected = format!("a record from {} to {}", self.end, self.data.end());
            return Err(snapshot.corrupt(field, expected, begin));
        }
        self.verify_gap(begin)?;
        let record = snapshot.record(begin)?;
        if record.end > self.data.end() {
            let expected = format!("the end of a record by {}", self.data.end());
            return Err(snapshot.corrupt(
                snapshot.header.data.offset + begin,
                expected,
                record.end,
            ));
        }
        self.end = record.end;
        self.verify_place(number, begin, &record)?;
        self.verify_value(&record)?;
        if record.shared {
            return Ok(());
        }
        let key_end = snapshot.offset_of(record.key) + record.key.len() as u64;
        snapshot.verify_zeros(key_end, snapshot.offset_of(record.stored))
    }

    /// Bytes that belong to no record are zero.
    fn verify_gap(&self, to: u64) -> Result<()> {
        let start = self.snapshot.header.data.offset;
        self.snapshot.verify_zeros(start + self.end, start + to)
    }

    /// A lookup of the key finds this very record.
    fn verify_place(&self, number: u64, begin: u64, record: &Record<'_>) -> Result<()> {
        let snapshot = self.snapshot;
        let hash = KeyHash::of(record.key, snapshot.header.seed);
        let mut probe = snapshot.probe(hash);
        loop {
            let line = snapshot.line(probe.line())?;
            for slot in line.matches(hash.fingerprint()) {
                if snapshot.record(line.record(slot))?.key != record.key {
                    continue;
                }
                if line.record(slot) == begin && probe.line() == number {
                    return Ok(());
                }
                let at = snapshot.header.data.offset + begin;
                return Err(snapshot.corrupt(at, "each key once", "a key that is found elsewhere"));
            }
            if line.overflow() & hash.overflow_bit() == 0 || !probe.advance() {
                let at = snapshot.header.data.offset + begin;
                let expected = "a key that its hash leads to";
                return Err(snapshot.corrupt(at, expected, "one that lookups do not find"));
            }
        }
    }

    fn verify_value(&mut self, record: &Record<'_>) -> Result<()> {
        let stored = Stored::new(self.snapshot, record);
        let value = stored.decompress(&mut self.scratch)?;
        if value.value_type() != record.value_type {
            let at = self.snapshot.offset_of(record.stored);
            return Err(self.snapshot.corrupt(at, record.value_type, "one without elements"));
        }
        let value_len = value.with_bytes(<[u8]>::len) as u64;
        let totals = &mut self.totals;
        totals.entries += 1;
        totals.key_bytes += record.key.len() as u64;
        totals.value_bytes += value_len;
        totals.stored_value_bytes += if record.shared { 0 } else { record.stored.len() as u64 };
        totals.shared += u64::from(record.shared);
        totals.compressed += u64::from(record.compressed);
        totals.by_type[usize::from(record.value_type.code())] += 1;
        Ok(())
    }
}
