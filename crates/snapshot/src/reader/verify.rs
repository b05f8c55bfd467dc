//! Verification of every byte: checksums, offsets, values, and that lookups find every entry.

use super::decompress::Scratch;
use super::file::SnapshotFile;
use super::metadata::Metadata;
use super::snapshot::Snapshot;
use super::stored::StoredValue;
use crate::error::Result;
use crate::format::hash::{KeyHash, checksum};
use crate::format::header::{AdditionalSection, Section, Shard};
use crate::format::layout::{
    SECTION_ALIGN, additional, directory, header as header_at, line, record,
};
use crate::format::line::Line;
use crate::format::record::Record;
use crate::format::totals::Totals;
use crate::parallel;
use std::sync::atomic::{AtomicU64, Ordering};

impl Snapshot {
    /// Verifies the whole file on all cores: checksums, offsets, values, and that a lookup finds
    /// every entry.
    ///
    /// Opening validates the header and the dictionary only, and lookups validate the bytes they
    /// read. After a successful verification, no lookup returns
    /// [`Error::Corrupt`](crate::Error::Corrupt) unless the file changes.
    ///
    /// # Errors
    /// Returns `Error::Corrupt` for the first contradiction to the format, or
    /// [`Error::Unreadable`](crate::Error::Unreadable) if a page could not be read.
    pub fn verify(&self) -> Result<()> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        self.verify_with(threads, |_, _| ())
    }

    /// Verifies the whole file, as [`verify`](Self::verify), on `threads` threads (at least one).
    ///
    /// After each partition, the thread that verified it calls `progress` with the number of
    /// verified entries and the number of all entries. Several threads call it at once, so the
    /// numbers of two calls can be out of order.
    ///
    /// # Errors
    /// Returns the same errors as `verify`.
    pub fn verify_with(&self, threads: usize, progress: impl Fn(u64, u64) + Sync) -> Result<()> {
        if self.set_stats().is_some() {
            // Of one file, the metadata is verified after the sections before it.
            self.metadata()?;
        }
        let (done, all) = (AtomicU64::new(0), self.len());
        self.each_file().try_for_each(|file| {
            file.verify(threads, |entries| {
                progress(done.fetch_add(entries, Ordering::Relaxed) + entries, all);
            })
        })
    }
}

impl SnapshotFile {
    /// Verifies the file on `threads` threads. Calls `verified` with the number of entries of each
    /// partition.
    fn verify(&self, threads: usize, verified: impl Fn(u64) + Sync) -> Result<()> {
        self.verify_sections()?;
        self.verify_directory()?;
        let totals = parallel::map(threads.max(1), 0..self.header.partitions(), |partition| {
            let totals = PartitionVerifier::new(self, partition).verify()?;
            verified(totals.entries);
            Ok(totals)
        })?;
        self.verify_totals(&totals)?;
        self.check_readable()
    }

    /// Checks that the bytes between sections are zero, the checksums of the dictionary and of the
    /// additional sections, and the metadata.
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
        )?;
        let mut end = header.data.end();
        for (number, AdditionalSection { section, hash, .. }) in
            header.additional.iter().enumerate()
        {
            self.verify_zeros(end, section.offset)?;
            let at = header_at::ADDITIONAL + number * additional::ENTRY_LEN + additional::CHECKSUM;
            let what = format!("additional section {number}");
            self.verify_section_hash(at as u64, &what, self.section(*section), *hash)?;
            end = section.end();
        }
        Metadata::of_file(self).map(|_| ())
    }

    /// Checks the directory: the data of the partitions is in order, with gaps of zeros for
    /// alignment only.
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
        let len = (expected + record::MAX_SHORT_LEN as u64).next_multiple_of(SECTION_ALIGN);
        if len != header.data.len {
            let at = header_at::DATA as u64 + 8;
            let expected = format!("{} bytes of data", header.data.len);
            return Err(self.corrupt(at, expected, len));
        }
        self.verify_zeros(header.data.offset + expected, header.data.end())
    }

    /// Checks that the bytes of the file from offset `from` to `to` are zero.
    fn verify_zeros(&self, from: u64, to: u64) -> Result<()> {
        let bytes = self.section(Section { offset: from, len: to.saturating_sub(from) });
        match bytes.iter().position(|&byte| byte != 0) {
            Some(at) => Err(self.corrupt(from + at as u64, "a zero", bytes[at])),
            None => Ok(()),
        }
    }

    /// Compares the counts of all partitions with the header.
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

    /// Returns the offset of these bytes, which must be a part of the file.
    fn offset_of(&self, part: &[u8]) -> u64 {
        (part.as_ptr().addr() - self.map.bytes().as_ptr().addr()) as u64
    }
}

/// The verification of one partition.
struct PartitionVerifier<'a> {
    file: &'a SnapshotFile,
    number: u64,
    /// The partition's data, relative to the data section.
    data: Section,
    totals: Totals,
    scratch: Scratch,
    /// The offset in the data section at which the last record ended.
    end: u64,
}

impl<'a> PartitionVerifier<'a> {
    fn new(file: &'a SnapshotFile, number: u64) -> Self {
        let data = file.directory_entry(number).data;
        let (totals, scratch) = (Totals::default(), Scratch::new());
        Self { file, number, data, totals, scratch, end: data.offset }
    }

    fn verify(mut self) -> Result<Totals> {
        let Self { file, number, data, .. } = self;
        file.will_read(number);
        file.verify_partition_hashes(number)?;
        for number in file.lines_of(number) {
            self.verify_line(number)?;
        }
        self.verify_gap(data.end())?;
        file.check_readable()?;
        Ok(self.totals)
    }

    /// Checks one line of the index and its entries.
    fn verify_line(&mut self, number: u64) -> Result<()> {
        let file = self.file;
        let line = file.line(number)?;
        let at = file.header.index.offset + number * line::LEN as u64;
        if line.shift() > line::MAX_SHIFT {
            let expected = format!("a shift of at most {}", line::MAX_SHIFT);
            return Err(file.corrupt(at + line::SHIFT as u64, expected, line.shift()));
        }
        let used = line.used().count();
        if !line.used().eq(0..used) {
            return Err(file.corrupt(at, "slots in use before those not in use", "a gap"));
        }
        if (used..line::SLOTS).any(|slot| line.record(slot) != line.base()) {
            let at = at + (line::OFFSETS + 2 * used) as u64;
            return Err(file.corrupt(at, "zero offsets in slots not in use", "another"));
        }
        for slot in line.used() {
            self.verify_entry(number, line, slot)?;
        }
        Ok(())
    }

    /// Checks the entry of one slot.
    fn verify_entry(&mut self, number: u64, line: Line<'_>, slot: usize) -> Result<()> {
        let file = self.file;
        let begin = line.record(slot);
        let at = file.header.index.offset + number * line::LEN as u64;
        let field = at + (line::OFFSETS + 2 * slot) as u64;
        if begin < self.end || begin >= self.data.end() {
            let expected = format!("a record from {} to {}", self.end, self.data.end());
            return Err(file.corrupt(field, expected, begin));
        }
        self.verify_gap(begin)?;
        let record = file.record(begin)?;
        if record.end > self.data.end() {
            let expected = format!("the end of a record by {}", self.data.end());
            return Err(file.corrupt(file.header.data.offset + begin, expected, record.end));
        }
        self.end = record.end;
        self.verify_lookup(number, begin, &record)?;
        self.verify_value(&record)?;
        if record.shared {
            return Ok(());
        }
        let key_end = file.offset_of(record.key) + record.key.len() as u64;
        file.verify_zeros(key_end, file.offset_of(record.stored))
    }

    /// Checks that the bytes between the last record and `to` are zero.
    fn verify_gap(&self, to: u64) -> Result<()> {
        let start = self.file.header.data.offset;
        self.file.verify_zeros(start + self.end, start + to)
    }

    /// Checks that a lookup of the key finds this record.
    fn verify_lookup(&self, number: u64, begin: u64, record: &Record<'_>) -> Result<()> {
        let file = self.file;
        let hash = KeyHash::of(record.key, file.header.seed);
        if let Some(Shard { number, of }) = file.header.shard
            && hash.shard(of) != number
        {
            let at = file.header.data.offset + begin;
            let expected = format!("a key of shard {number}");
            return Err(file.corrupt(at, expected, format!("one of shard {}", hash.shard(of))));
        }
        let mut probe = file.probe(hash);
        loop {
            let line = file.line(probe.line())?;
            for slot in line.matches(hash.fingerprint()) {
                if file.record(line.record(slot))?.key != record.key {
                    continue;
                }
                if line.record(slot) == begin && probe.line() == number {
                    return Ok(());
                }
                let at = file.header.data.offset + begin;
                return Err(file.corrupt(at, "each key once", "a key that is found elsewhere"));
            }
            if line.overflow() & hash.overflow_bit() == 0 || !probe.advance() {
                let at = file.header.data.offset + begin;
                let expected = "a key that its hash leads to";
                return Err(file.corrupt(at, expected, "one that lookups do not find"));
            }
        }
    }

    /// Checks the value of a record, and adds the entry to the counts.
    fn verify_value(&mut self, record: &Record<'_>) -> Result<()> {
        let stored = StoredValue::new(self.file, record);
        let value = stored.decompress(&mut self.scratch)?;
        if value.value_type() != record.value_type {
            let at = self.file.offset_of(record.stored);
            return Err(self.file.corrupt(at, record.value_type, "one without elements"));
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
