//! Corrects the checksums and lengths of damaged snapshots.

use nuthatch_snapshot::layout::{
    MAGIC, MANIFEST_MAGIC, SECTION_ALIGN, VERSION_MAJOR, directory, header, limits, line, manifest,
    manifest_entry, record,
};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of bits of a partition number. A small file has fewer partitions.
const PARTITION_BITS: u64 = 8;

/// Corrects the lengths and offsets of sections and all checksums, so that the damage reaches the
/// code that reads the index and data. The geometry, counts, index lines and records are not
/// changed.
pub fn mend(bytes: &mut Vec<u8>) {
    let align = SECTION_ALIGN as usize;
    bytes.resize(bytes.len().max(header::LEN).next_multiple_of(align), 0);
    put(bytes, header::MAGIC, &MAGIC);
    put(bytes, header::VERSION_MAJOR, &VERSION_MAJOR.to_le_bytes());
    put(bytes, header::HEADER_LEN, &(header::LEN as u32).to_le_bytes());
    let file_len = bytes.len() as u64;
    put(bytes, header::FILE_LEN, &file_len.to_le_bytes());
    if let Some(sections) = Sections::of(bytes) {
        sections.mend(bytes);
    }
    let hash = xxh3_64(&bytes[..header::HASH]);
    put(bytes, header::HASH, &hash.to_le_bytes());
}

/// Corrects the lengths, counts and checksums of a manifest. The seed, the metadata and the entries
/// of the shards are not changed.
pub fn mend_manifest(bytes: &mut Vec<u8>) {
    let table_end = manifest::LEN + manifest_entry::LEN;
    bytes.resize(bytes.len().max(table_end), 0);
    put(bytes, manifest::MAGIC, &MANIFEST_MAGIC);
    put(bytes, manifest::VERSION_MAJOR, &VERSION_MAJOR.to_le_bytes());
    put(bytes, manifest::HEADER_LEN, &(manifest::LEN as u32).to_le_bytes());
    let file_len = bytes.len() as u64;
    put(bytes, manifest::FILE_LEN, &file_len.to_le_bytes());
    let room = (bytes.len() - manifest::LEN) / manifest_entry::LEN;
    let shards = (number(bytes, manifest::SHARDS, 4) as usize).clamp(1, room);
    put(bytes, manifest::SHARDS, &(shards as u32).to_le_bytes());
    let table = manifest::LEN..manifest::LEN + shards * manifest_entry::LEN;
    let entries = bytes[table.clone()].chunks_exact(manifest_entry::LEN);
    let sum = entries
        .fold(0_u64, |sum, entry| sum.wrapping_add(number(entry, manifest_entry::ENTRIES, 8)));
    put(bytes, manifest::ENTRIES, &sum.to_le_bytes());
    let metadata_len = (bytes.len() - table.end) as u64;
    put(bytes, manifest::METADATA_LEN, &metadata_len.to_le_bytes());
    let hashes = [xxh3_64(&bytes[table.clone()]), xxh3_64(&bytes[table.end..])];
    put(bytes, manifest::TABLE_HASH, &hashes[0].to_le_bytes());
    put(bytes, manifest::METADATA_HASH, &hashes[1].to_le_bytes());
    let hash = xxh3_64(&bytes[..manifest::HASH]);
    put(bytes, manifest::HASH, &hash.to_le_bytes());
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The offset and length of each section.
struct Sections {
    dictionary: (u64, u64),
    directory: (u64, u64),
    index: (u64, u64),
    data: (u64, u64),
    partitions: u64,
}

impl Sections {
    /// Returns the sections that result from the geometry, or `None` if they do not fit the file.
    fn of(bytes: &[u8]) -> Option<Self> {
        let bits = number(bytes, header::PARTITION_BITS, 4);
        let lines = number(bytes, header::LINES_PER_PARTITION, 4);
        let dictionary_len = number(bytes, header::DICTIONARY + 8, 8);
        let file_len = bytes.len() as u64;
        let fits = bits <= PARTITION_BITS
            && lines > 0
            && lines <= file_len
            && dictionary_len <= file_len.min(limits::MAX_DICTIONARY_LEN);
        if !fits {
            return None;
        }
        let mut next = header::LEN as u64;
        let mut section = |len: u64| {
            let offset = next;
            next = (offset + len).next_multiple_of(SECTION_ALIGN);
            (offset, len)
        };
        let dictionary = section(dictionary_len);
        let directory = section(directory::ENTRY_LEN as u64 * (1 << bits));
        let index = section(line::LEN as u64 * lines * (1 << bits));
        let data = (section(0).0, file_len.checked_sub(section(0).0)?);
        Some(Self { dictionary, directory, index, data, partitions: 1 << bits })
    }

    fn mend(&self, bytes: &mut [u8]) {
        for (at, (offset, len)) in [
            (header::DICTIONARY, self.dictionary),
            (header::DIRECTORY, self.directory),
            (header::INDEX, self.index),
            (header::DATA, self.data),
        ] {
            put(bytes, at, &offset.to_le_bytes());
            put(bytes, at + 8, &len.to_le_bytes());
        }
        let lines_len = self.index.1 / self.partitions;
        for partition in 0..self.partitions {
            let entry = self.directory.0 as usize + partition as usize * directory::ENTRY_LEN;
            let index = xxh3_64(part(bytes, (self.index.0 + partition * lines_len, lines_len)));
            put(bytes, entry + directory::INDEX_HASH, &index.to_le_bytes());
            self.mend_data(bytes, entry, partition + 1 == self.partitions);
        }
        let hash = xxh3_64(part(bytes, self.dictionary));
        put(bytes, header::DICTIONARY_HASH, &hash.to_le_bytes());
        let hash = xxh3_64(part(bytes, self.directory));
        put(bytes, header::DIRECTORY_HASH, &hash.to_le_bytes());
    }

    /// Corrects the length and checksum of a partition's data. The last partition extends to the
    /// padding of zeros at the end of the section.
    fn mend_data(&self, bytes: &mut [u8], entry: usize, last: bool) {
        let offset = number(bytes, entry + directory::DATA_OFFSET, 8);
        let mut len = number(bytes, entry + directory::DATA_LEN, 8);
        let zeros = (record::MAX_SHORT_LEN as u64).next_multiple_of(SECTION_ALIGN);
        let Some(room) = self.data.1.saturating_sub(zeros).checked_sub(offset) else { return };
        if last && len.checked_next_multiple_of(SECTION_ALIGN) != Some(room) {
            len = room;
            put(bytes, entry + directory::DATA_LEN, &len.to_le_bytes());
        }
        if len <= room {
            let hash = xxh3_64(part(bytes, (self.data.0 + offset, len)));
            put(bytes, entry + directory::DATA_HASH, &hash.to_le_bytes());
        }
    }
}

fn part(bytes: &[u8], (offset, len): (u64, u64)) -> &[u8] {
    &bytes[offset as usize..(offset + len) as usize]
}
