//! Checksums of the directory and of partitions.

use super::file::SnapshotFile;
use crate::error::{Error, Result};
use crate::format::directory::DirectoryEntry;
use crate::format::hash::checksum;
use crate::format::header::Section;
use crate::format::layout::{directory, header as header_at, line};
use std::ops::Range;

impl SnapshotFile {
    /// Checks the checksum of the directory.
    pub(super) fn verify_directory_hash(&self) -> Result<()> {
        let header = &self.header;
        let found = checksum(self.section(header.directory));
        let at = header_at::DIRECTORY_HASH as u64;
        self.verify_hash(at, "the directory", (found, header.directory_hash))
    }

    /// Checks the checksums of the index lines and of the data of a partition.
    pub(super) fn verify_partition_hashes(&self, partition: u64) -> Result<()> {
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
    pub(super) fn lines_of(&self, partition: u64) -> Range<u64> {
        let lines_each = u64::from(self.header.lines_per_partition);
        partition * lines_each..(partition + 1) * lines_each
    }

    /// Compares a computed checksum with the one that is stored at offset `at`.
    pub(super) fn verify_hash(
        &self,
        at: u64,
        what: &str,
        (found, stored): (u64, u64),
    ) -> Result<()> {
        self.check_readable()?;
        if found == stored {
            return Ok(());
        }
        Err(Error::checksum(self.path(), at, what, (stored, found)))
    }

    /// Compares the checksum of a section with the one that is stored at offset `at`.
    pub(super) fn verify_section_hash(
        &self,
        at: u64,
        what: &str,
        section: &[u8],
        stored: u64,
    ) -> Result<()> {
        self.verify_hash(at, what, (checksum(section), stored))
    }

    /// Returns the checksum of the header, as the file stores it.
    pub(super) fn header_hash(&self) -> u64 {
        let stored = self.map.bytes()[header_at::HASH..].first_chunk();
        u64::from_le_bytes(*stored.expect("a validated header"))
    }

    /// Returns the directory entry of a partition.
    pub(super) fn directory_entry(&self, partition: u64) -> DirectoryEntry {
        DirectoryEntry::decode(self.map.bytes(), self.header.directory, partition)
    }

    /// Returns the bytes of a section, which must be within the file.
    pub(super) fn section(&self, section: Section) -> &[u8] {
        &self.map.bytes()[section.offset as usize..section.end() as usize]
    }
}
