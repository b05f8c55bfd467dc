//! The header of a file before validation: decoding and validation.

use super::hash::checksum;
use super::header::{AdditionalSection, Header, Section, Shard};
use super::layout::{self, additional, directory, flags, header as at, limits, line, record};
use crate::error::{Damage, Error};
use crate::values::ValueType;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

/// The lengths that a section may have, in bytes.
enum Lens {
    Within(RangeInclusive<u64>),
    /// The length that follows from other fields.
    Computed(u64),
}

impl Lens {
    /// Returns the length of `count` items of `len` bytes each.
    fn of_items(count: u64, len: usize) -> Self {
        Self::Computed(count.saturating_mul(len as u64))
    }
}

/// The header of a file before validation.
pub(crate) struct RawHeader<'a> {
    bytes: &'a [u8; at::LEN],
    path: &'a Path,
}

impl<'a> RawHeader<'a> {
    /// Checks the magic and the length of the first bytes of a file.
    ///
    /// # Errors
    /// Returns [`Error::NotASnapshot`] for another magic, [`Error::Corrupt`] for fewer bytes than a
    /// header.
    pub(crate) fn new(bytes: &'a [u8], path: &'a Path) -> Result<Self, Error> {
        let magic = bytes.get(..8).unwrap_or(bytes);
        if *magic != layout::MAGIC {
            let found = format!("\"{}\"", magic.escape_ascii());
            let expected = format!("\"{}\"", layout::MAGIC.escape_ascii());
            return Err(Error::NotASnapshot(Damage::boxed(path, 0, expected, found)));
        }
        match bytes.first_chunk() {
            Some(bytes) => Ok(Self { bytes, path }),
            None => Err(Error::corrupt(
                path,
                bytes.len() as u64,
                format!("a header of {} bytes", at::LEN),
                format!("the end of the file after {} bytes", bytes.len()),
            )),
        }
    }

    fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.bytes[offset..offset + 2].try_into().expect("two bytes"))
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.bytes[offset..offset + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes[offset..offset + 8].try_into().expect("eight bytes"))
    }

    fn section(&self, offset: usize) -> Section {
        Section { offset: self.u64(offset), len: self.u64(offset + 8) }
    }

    /// Validates all fields against each other and the length of the file, without reading the
    /// sections.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] for another major version or an unknown flag, and
    /// [`Error::Corrupt`] for any other contradiction to the format.
    pub(crate) fn validate(&self, file_len: u64) -> Result<Header, Error> {
        self.check_version()?;
        let (stored, found) = (self.u64(at::HASH), checksum(&self.bytes[..at::HASH]));
        if stored != found {
            let offset = at::HASH as u64;
            return Err(Error::checksum(self.path, offset, "the header", (stored, found)));
        }
        self.check_flags()?;
        self.check_index_kind()?;
        self.check_types()?;
        self.check_required_sections()?;
        self.require(at::HEADER_LEN, "the header length", {
            (at::LEN as u64, u64::from(self.u32(at::HEADER_LEN)))
        })?;
        self.require(at::FILE_LEN, "the file length", (self.u64(at::FILE_LEN), file_len))?;
        let header = self.read();
        self.at_most(at::FILE_LEN, "a file length", limits::MAX_FILE_LEN, file_len)?;
        self.check_geometry(&header)?;
        self.check_sections(&header)?;
        self.check_additional_sections(&header)?;
        self.check_counts(&header)?;
        self.check_shard()?;
        self.check_reserved()?;
        Ok(header)
    }

    fn read(&self) -> Header {
        let mut entries_by_type = [0; 16];
        for (code, count) in entries_by_type.iter_mut().enumerate() {
            *count = self.u64(at::ENTRIES_BY_TYPE + 8 * code);
        }
        Header {
            version_minor: self.u16(at::VERSION_MINOR),
            file_len: self.u64(at::FILE_LEN),
            seed: self.u64(at::SEED),
            entries: self.u64(at::ENTRIES),
            partition_bits: self.u32(at::PARTITION_BITS),
            lines_per_partition: self.u32(at::LINES_PER_PARTITION),
            max_probe: self.u32(at::MAX_PROBE),
            flags: self.u32(at::FLAGS),
            dictionary: self.section(at::DICTIONARY),
            directory: self.section(at::DIRECTORY),
            index: self.section(at::INDEX),
            data: self.section(at::DATA),
            dictionary_hash: self.u64(at::DICTIONARY_HASH),
            directory_hash: self.u64(at::DIRECTORY_HASH),
            key_bytes: self.u64(at::KEY_BYTES),
            value_bytes: self.u64(at::VALUE_BYTES),
            stored_value_bytes: self.u64(at::STORED_VALUE_BYTES),
            shared_entries: self.u64(at::SHARED_ENTRIES),
            compressed_entries: self.u64(at::COMPRESSED_ENTRIES),
            entries_by_type,
            shard: match self.u32(at::SHARDS) {
                0 => None,
                of => Some(Shard { number: self.u32(at::SHARD), of }),
            },
            additional: (0..self.u32(at::ADDITIONAL_COUNT) as usize)
                .map(|number| self.additional(number))
                .collect(),
        }
    }

    /// Returns the entry of an additional section. Its `required` must have been checked.
    fn additional(&self, number: usize) -> AdditionalSection {
        let entry = at::ADDITIONAL + number * additional::ENTRY_LEN;
        AdditionalSection {
            kind: self.u32(entry + additional::KIND),
            is_required: self.u32(entry + additional::REQUIRED) == 1,
            section: self.section(entry + additional::OFFSET),
            hash: self.u64(entry + additional::CHECKSUM),
        }
    }

    fn check_version(&self) -> Result<(), Error> {
        let major = self.u16(at::VERSION_MAJOR);
        if major == layout::VERSION_MAJOR {
            return Ok(());
        }
        let expected = format!("format version {}", layout::VERSION_MAJOR);
        let found = format!("version {major}.{}", self.u16(at::VERSION_MINOR));
        Err(self.unsupported(at::VERSION_MAJOR, expected, found))
    }

    fn check_flags(&self) -> Result<(), Error> {
        let found = self.u32(at::FLAGS);
        let needs_zstd = found & (flags::ZSTD | flags::DICTIONARY) != 0;
        let (expected, unknown) = match found & !flags::KNOWN {
            0 if needs_zstd && !cfg!(feature = "zstd") => {
                ("a build with the feature `zstd`", found)
            }
            0 => return Ok(()),
            unknown => ("only features this build knows", unknown),
        };
        Err(self.unsupported(at::FLAGS, expected, format!("flags {unknown:#x}")))
    }

    fn check_index_kind(&self) -> Result<(), Error> {
        let found = match self.u32(at::INDEX_KIND) {
            line::INDEX_KIND => return Ok(()),
            1 => "kind 1 (compact)".to_owned(),
            other => format!("kind {other}"),
        };
        let expected = format!("an index of kind {} (lines)", line::INDEX_KIND);
        Err(self.unsupported(at::INDEX_KIND, expected, found))
    }

    /// Checks that no entry has a type of a later version.
    fn check_types(&self) -> Result<(), Error> {
        let last_known = ValueType::ALL.map(ValueType::code).into_iter().max().unwrap_or_default();
        let later = usize::from(last_known) + 1..16;
        let entry = |code: usize| at::ENTRIES_BY_TYPE + 8 * code;
        let Some(code) = later.into_iter().find(|code| self.u64(entry(*code)) > 0) else {
            return Ok(());
        };
        let name = if code == 11 { " (list of bytes)" } else { "" };
        let (expected, found) = (format!("types 1 to {last_known}"), format!("type {code}{name}"));
        Err(self.unsupported(entry(code), expected, found))
    }

    /// Checks that this version knows each additional section that a reader must know.
    fn check_required_sections(&self) -> Result<(), Error> {
        let count = self.u32(at::ADDITIONAL_COUNT);
        let max = additional::MAX_SECTIONS as u64;
        self.at_most(at::ADDITIONAL_COUNT, "additional sections", max, u64::from(count))?;
        for number in 0..count as usize {
            let entry = at::ADDITIONAL + number * additional::ENTRY_LEN;
            let required = u64::from(self.u32(entry + additional::REQUIRED));
            self.within(entry + additional::REQUIRED, "for required", 0..=1, required)?;
            let kind = self.u32(entry + additional::KIND);
            if required == 1 && kind != additional::METADATA {
                let expected = "a required section of kind 1 (metadata)";
                return Err(self.unsupported(entry, expected, format!("kind {kind}")));
            }
        }
        Ok(())
    }

    fn check_geometry(&self, header: &Header) -> Result<(), Error> {
        let bits = u64::from(header.partition_bits);
        let max_bits = u64::from(limits::MAX_PARTITION_BITS);
        self.at_most(at::PARTITION_BITS, "partition bits", max_bits, bits)?;
        let lines = u64::from(header.lines_per_partition);
        if lines == 0 {
            return Err(self.corrupt(at::LINES_PER_PARTITION, "at least one line", "none"));
        }
        let max = u64::from(limits::MAX_PROBE).min(lines - 1);
        self.at_most(at::MAX_PROBE, "a probe length", max, u64::from(header.max_probe))
    }

    /// Checks that the sections follow the header in order, aligned, with gaps only for alignment,
    /// and that each length agrees with the other fields.
    fn check_sections(&self, header: &Header) -> Result<(), Error> {
        let has_dictionary = u64::from(header.flags & flags::DICTIONARY != 0);
        let dictionary_lens = has_dictionary..=has_dictionary * limits::MAX_DICTIONARY_LEN;
        let lines = header.partitions() * u64::from(header.lines_per_partition);
        let min_data = (record::MAX_SHORT_LEN as u64).next_multiple_of(layout::SECTION_ALIGN);
        let mut expected_offset = at::LEN as u64;
        for (field, what, section, lens) in [
            (at::DICTIONARY, "dictionary", header.dictionary, Lens::Within(dictionary_lens)),
            (at::DIRECTORY, "directory", header.directory, {
                Lens::of_items(header.partitions(), directory::ENTRY_LEN)
            }),
            (at::INDEX, "index", header.index, Lens::of_items(lines, line::LEN)),
            (at::DATA, "data", header.data, Lens::Within(min_data..=limits::MAX_FILE_LEN)),
        ] {
            let offset = section.offset;
            self.require(field, &format!("the {what} offset"), (expected_offset, offset))?;
            let room = header.file_len.saturating_sub(offset);
            self.at_most(field + 8, "a section within the file", room, section.len)?;
            match lens {
                Lens::Within(lens) => {
                    self.within(field + 8, &format!("bytes of {what}"), lens, section.len)
                }
                Lens::Computed(computed) => self.check_len(field + 8, what, section.len, computed),
            }?;
            expected_offset = section.end().next_multiple_of(layout::SECTION_ALIGN);
        }
        let is_last = header.additional.is_empty();
        let rest = if is_last { header.file_len - header.data.offset } else { header.data.len };
        let computed = rest.next_multiple_of(layout::SECTION_ALIGN);
        self.check_len(at::DATA + 8, "data", header.data.len, computed)
    }

    /// Checks that the additional sections follow the data, in the order of their kinds, aligned,
    /// up to the end of the file.
    fn check_additional_sections(&self, header: &Header) -> Result<(), Error> {
        let (mut end, mut min_kind) = (header.data.end(), 0);
        for (number, AdditionalSection { kind, section, .. }) in
            header.additional.iter().enumerate()
        {
            let entry = at::ADDITIONAL + number * additional::ENTRY_LEN;
            if *kind <= min_kind {
                let expected = format!("a kind above {min_kind}");
                return Err(self.corrupt(entry, &expected, &kind.to_string()));
            }
            let offset = end.next_multiple_of(layout::SECTION_ALIGN);
            let field = entry + additional::OFFSET;
            self.require(field, "the offset of the section", (offset, section.offset))?;
            let field = entry + additional::LENGTH;
            let room = header.file_len.saturating_sub(offset);
            self.at_most(field, "a section within the file", room, section.len)?;
            if *kind == additional::METADATA {
                let lens = 1..=limits::MAX_METADATA_LEN;
                self.within(field, "bytes of metadata", lens, section.len)?;
            }
            if number + 1 == header.additional.len() {
                self.check_len(field, "last section", section.len, room)?;
            }
            (end, min_kind) = (section.end(), *kind);
        }
        let unused = at::ADDITIONAL + header.additional.len() * additional::ENTRY_LEN;
        self.check_zeros(unused..at::RESERVED)
    }

    /// Checks that the number of the shard is below the number of shards.
    fn check_shard(&self) -> Result<(), Error> {
        let (shard, of) = (u64::from(self.u32(at::SHARD)), u64::from(self.u32(at::SHARDS)));
        self.at_most(at::SHARDS, "shards", u64::from(limits::MAX_SHARDS), of)?;
        self.at_most(at::SHARD, "a number of a shard", of.saturating_sub(1), shard)
    }

    /// Checks a stored length against the one that follows from other fields of the header.
    fn check_len(
        &self,
        offset: usize,
        what: &str,
        stored: u64,
        computed: u64,
    ) -> Result<(), Error> {
        if stored == computed {
            return Ok(());
        }
        let expected = format!("the stored length {stored} of the {what}");
        Err(self.corrupt(offset, &expected, &format!("{computed} from the other fields")))
    }

    fn check_counts(&self, header: &Header) -> Result<(), Error> {
        let sum = |counts: &[u64]| counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let known = ValueType::ALL.map(|t| header.entries_by_type[usize::from(t.code())]);
        for (what, counts) in [
            ("the entries of all types", &header.entries_by_type[..]),
            ("the entries of known types", &known),
        ] {
            self.require(at::ENTRIES_BY_TYPE, what, (header.entries, sum(counts)))?;
        }
        let slots = header.index.len / line::LEN as u64 * line::SLOTS as u64;
        self.at_most(at::ENTRIES, "entries the index has slots for", slots, header.entries)?;
        for (field, what, flag, count) in [
            (at::SHARED_ENTRIES, "shared entries", flags::SHARED, header.shared_entries),
            (at::COMPRESSED_ENTRIES, "compressed entries", flags::ZSTD, header.compressed_entries),
        ] {
            let min = u64::from(header.flags & flag != 0);
            self.within(field, what, min..=min * header.entries, count)?;
        }
        Ok(())
    }

    /// Checks that the reserved bytes are zero. A newer minor version may store fields there that
    /// this version ignores.
    fn check_reserved(&self) -> Result<(), Error> {
        if self.u16(at::VERSION_MINOR) > layout::VERSION_MINOR {
            return Ok(());
        }
        self.check_zeros(at::RESERVED..at::HASH)
    }

    fn check_zeros(&self, range: Range<usize>) -> Result<(), Error> {
        let (start, bytes) = (range.start, &self.bytes[range]);
        match bytes.iter().position(|&byte| byte != 0) {
            Some(at) => Err(self.corrupt(start + at, "a zero", &bytes[at].to_string())),
            None => Ok(()),
        }
    }

    fn within(
        &self,
        offset: usize,
        what: &str,
        range: RangeInclusive<u64>,
        found: u64,
    ) -> Result<(), Error> {
        if range.contains(&found) {
            return Ok(());
        }
        let expected = if range.start() == range.end() {
            format!("{} {what}", range.start())
        } else {
            format!("{} to {} {what}", range.start(), range.end())
        };
        Err(self.corrupt(offset, &expected, &found.to_string()))
    }

    fn require(&self, offset: usize, what: &str, pair: (u64, u64)) -> Result<(), Error> {
        let (expected, found) = pair;
        if expected == found {
            return Ok(());
        }
        Err(self.corrupt(offset, &format!("{what} to be {expected}"), &found.to_string()))
    }

    fn at_most(&self, offset: usize, what: &str, max: u64, found: u64) -> Result<(), Error> {
        if found <= max {
            return Ok(());
        }
        Err(self.corrupt(offset, &format!("{what} of at most {max}"), &found.to_string()))
    }

    fn unsupported(&self, offset: usize, expected: impl Display, found: impl Display) -> Error {
        Error::Unsupported(Damage::boxed(self.path, offset as u64, expected, found))
    }

    fn corrupt(&self, offset: usize, expected: &str, found: &str) -> Error {
        Error::corrupt(self.path, offset as u64, expected, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the header of a file without entries.
    fn empty() -> Header {
        let section = |offset, len| Section { offset, len };
        Header {
            file_len: 1216,
            lines_per_partition: 1,
            dictionary: section(512, 0),
            directory: section(512, 32),
            index: section(576, 64),
            data: section(640, 576),
            ..Header::default()
        }
    }

    fn rejected_offset(bytes: &[u8]) -> Option<u64> {
        match RawHeader::new(bytes, Path::new("a.nut")).and_then(|raw| raw.validate(1216)) {
            Ok(_) => None,
            Err(Error::Corrupt(damage)) => Some(damage.offset),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_header_round_trips() {
        let header = empty();
        let bytes = header.to_bytes();
        let raw = RawHeader::new(&bytes, Path::new("a.nut")).expect("a header");
        assert_eq!(raw.validate(1216).expect("a good one"), header);
    }

    /// The length of the index, 2^28 * 2^30 * 64 bytes, is 0 in 64 bits.
    #[test]
    fn a_geometry_that_overflows_is_rejected() {
        let largest = Header { partition_bits: 28, lines_per_partition: u32::MAX, ..empty() };
        for header in [Header { lines_per_partition: 1 << 30, ..largest.clone() }, largest] {
            assert_eq!(rejected_offset(&header.to_bytes()), Some(at::DIRECTORY as u64 + 8));
        }
    }

    #[test]
    fn a_newer_minor_version_may_use_reserved_bytes() {
        let with_reserved = |version_minor| {
            let mut bytes = Header { version_minor, ..empty() }.to_bytes();
            bytes[at::RESERVED] = 1;
            let hash = checksum(&bytes[..at::HASH]);
            bytes[at::HASH..].copy_from_slice(&hash.to_le_bytes());
            rejected_offset(&bytes)
        };
        assert_eq!(with_reserved(layout::VERSION_MINOR), Some(at::RESERVED as u64));
        assert_eq!(with_reserved(layout::VERSION_MINOR + 1), None);
    }

    #[test]
    fn flags_agree_with_the_counts_and_sections_they_describe() {
        let with_flag = |flags| rejected_offset(&Header { flags, ..empty() }.to_bytes());
        assert_eq!(with_flag(flags::SHARED), Some(at::SHARED_ENTRIES as u64));
        #[cfg(feature = "zstd")]
        {
            assert_eq!(with_flag(flags::ZSTD), Some(at::COMPRESSED_ENTRIES as u64));
            assert_eq!(with_flag(flags::DICTIONARY), Some(at::DICTIONARY as u64 + 8));
        }
        let shared = Header { shared_entries: 1, ..empty() };
        assert_eq!(rejected_offset(&shared.to_bytes()), Some(at::SHARED_ENTRIES as u64));
    }
}
