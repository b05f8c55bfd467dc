//! The manifest of a set of shards: encoding, decoding and validation.

use super::hash::checksum;
use super::header::Header;
use super::layout::{
    self, header as header_at, limits, manifest as at, manifest_entry as entry_at,
};
use crate::error::{Damage, Error};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A shard as its manifest describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardEntry {
    pub(crate) file_len: u64,
    pub(crate) entries: u64,
    /// The checksum of the shard's header, which covers all other checksums of the file.
    pub(crate) header_hash: u64,
}

impl ShardEntry {
    /// Returns the entry of a shard with this header, which has these bytes.
    pub(crate) fn of(header: &Header, bytes: &[u8; header_at::LEN]) -> Self {
        let (_, hash) = bytes.split_at(header_at::HASH);
        Self {
            file_len: header.file_len,
            entries: header.entries,
            header_hash: u64::from_le_bytes(hash.try_into().expect("eight bytes")),
        }
    }

    /// Returns the name of the file of shard `number`.
    pub(crate) fn file_name(&self, number: u32) -> String {
        format!("{number:05}-{:016x}.shard", self.header_hash)
    }
}

/// A validated manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) version_minor: u16,
    pub(crate) seed: u64,
    pub(crate) shards: Vec<ShardEntry>,
    /// The metadata section, not decoded.
    pub(crate) metadata: Vec<u8>,
}

impl Manifest {
    /// Returns whether the first bytes of a file are those of a manifest.
    pub(crate) fn is_manifest(bytes: &[u8]) -> bool {
        bytes.starts_with(&layout::MANIFEST_MAGIC)
    }

    /// Returns the number of entries of all shards.
    pub(crate) fn entries(&self) -> u64 {
        self.shards.iter().map(|shard| shard.entries).sum()
    }

    /// Returns the paths of the shards of the manifest at a path.
    pub(crate) fn paths(&self, manifest: &Path) -> impl Iterator<Item = PathBuf> {
        let names = self.shards.iter().zip(0..).map(|(shard, number)| shard.file_name(number));
        names.map(|name| manifest.with_file_name(name))
    }

    /// Returns the offset in the file of the metadata.
    pub(crate) fn metadata_offset(&self) -> u64 {
        (at::LEN + self.shards.len() * entry_at::LEN) as u64
    }

    /// Encodes the manifest.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut table = Vec::with_capacity(self.shards.len() * entry_at::LEN);
        for shard in &self.shards {
            let mut entry = [0; entry_at::LEN];
            for (at, number) in [
                (entry_at::FILE_LEN, shard.file_len),
                (entry_at::ENTRIES, shard.entries),
                (entry_at::HEADER_HASH, shard.header_hash),
            ] {
                entry[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            table.extend_from_slice(&entry);
        }
        let mut bytes = vec![0; at::LEN];
        let mut put = |offset: usize, field: &[u8]| {
            bytes[offset..offset + field.len()].copy_from_slice(field);
        };
        put(at::MAGIC, &layout::MANIFEST_MAGIC);
        put(at::VERSION_MAJOR, &layout::VERSION_MAJOR.to_le_bytes());
        put(at::VERSION_MINOR, &self.version_minor.to_le_bytes());
        put(at::HEADER_LEN, &(at::LEN as u32).to_le_bytes());
        put(at::SHARDS, &(self.shards.len() as u32).to_le_bytes());
        for (offset, number) in [
            (at::FILE_LEN, (at::LEN + table.len() + self.metadata.len()) as u64),
            (at::SEED, self.seed),
            (at::ENTRIES, self.entries()),
            (at::METADATA_LEN, self.metadata.len() as u64),
            (at::TABLE_HASH, checksum(&table)),
            (at::METADATA_HASH, checksum(&self.metadata)),
        ] {
            put(offset, &number.to_le_bytes());
        }
        let hash = checksum(&bytes[..at::HASH]);
        bytes[at::HASH..].copy_from_slice(&hash.to_le_bytes());
        bytes.extend_from_slice(&table);
        bytes.extend_from_slice(&self.metadata);
        bytes
    }

    /// Decodes and validates the bytes of a manifest, which begin with its magic.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] for another major version or an unknown flag, and
    /// [`Error::Corrupt`] for any other contradiction to the format.
    pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let Some(header) = bytes.first_chunk::<{ at::LEN }>() else {
            let expected = format!("a header of {} bytes", at::LEN);
            let found = format!("the end of the file after {} bytes", bytes.len());
            return Err(Error::corrupt(path, bytes.len() as u64, expected, found));
        };
        let raw = RawManifest { header, path };
        raw.check(bytes.len() as u64)?;
        let (table, metadata) =
            bytes[at::LEN..].split_at(raw.u32(at::SHARDS) as usize * entry_at::LEN);
        for (field, what, bytes) in
            [(at::TABLE_HASH, "the table", table), (at::METADATA_HASH, "the metadata", metadata)]
        {
            let (stored, found) = (raw.u64(field), checksum(bytes));
            if stored != found {
                return Err(Error::checksum(path, field as u64, what, (stored, found)));
            }
        }
        let number = |entry: &[u8], at: usize| {
            u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight bytes"))
        };
        let shards = table.as_chunks::<{ entry_at::LEN }>().0.iter().map(|entry| ShardEntry {
            file_len: number(entry, entry_at::FILE_LEN),
            entries: number(entry, entry_at::ENTRIES),
            header_hash: number(entry, entry_at::HEADER_HASH),
        });
        let manifest = Self {
            version_minor: raw.u16(at::VERSION_MINOR),
            seed: raw.u64(at::SEED),
            shards: shards.collect(),
            metadata: metadata.to_vec(),
        };
        let sum =
            manifest.shards.iter().try_fold(0, |sum: u64, shard| sum.checked_add(shard.entries));
        if sum != Some(raw.u64(at::ENTRIES)) {
            let expected = format!("{} entries in all shards", raw.u64(at::ENTRIES));
            let found = sum.map_or_else(|| "more than 2^64".to_owned(), |sum| sum.to_string());
            return Err(raw.corrupt(at::ENTRIES, expected, found));
        }
        Ok(manifest)
    }
}

/// The header of a manifest before validation.
struct RawManifest<'a> {
    header: &'a [u8; at::LEN],
    path: &'a Path,
}

impl RawManifest<'_> {
    fn check(&self, file_len: u64) -> Result<(), Error> {
        let major = self.u16(at::VERSION_MAJOR);
        if major != layout::VERSION_MAJOR {
            let expected = format!("format version {}", layout::VERSION_MAJOR);
            let found = format!("version {major}.{}", self.u16(at::VERSION_MINOR));
            return Err(self.unsupported(at::VERSION_MAJOR, expected, found));
        }
        let (stored, found) = (self.u64(at::HASH), checksum(&self.header[..at::HASH]));
        if stored != found {
            let what = "the header of the manifest";
            return Err(Error::checksum(self.path, at::HASH as u64, what, (stored, found)));
        }
        let flags = self.u32(at::FLAGS);
        if flags != 0 {
            let expected = "only features this build knows";
            return Err(self.unsupported(at::FLAGS, expected, format!("flags {flags:#x}")));
        }
        let header_len = u64::from(self.u32(at::HEADER_LEN));
        self.require(at::HEADER_LEN, "the header length", (at::LEN as u64, header_len))?;
        self.require(at::FILE_LEN, "the file length", (self.u64(at::FILE_LEN), file_len))?;
        let shards = self.u32(at::SHARDS);
        if !(1..=limits::MAX_SHARDS).contains(&shards) {
            let expected = format!("1 to {} shards", limits::MAX_SHARDS);
            return Err(self.corrupt(at::SHARDS, expected, shards));
        }
        let metadata_len = self.u64(at::METADATA_LEN);
        if metadata_len > limits::MAX_METADATA_LEN {
            let expected = format!("at most {} bytes of metadata", limits::MAX_METADATA_LEN);
            return Err(self.corrupt(at::METADATA_LEN, expected, metadata_len));
        }
        let len = at::LEN as u64 + u64::from(shards) * entry_at::LEN as u64 + metadata_len;
        self.require(at::FILE_LEN, "the file length", (len, file_len))?;
        let is_newer = self.u16(at::VERSION_MINOR) > layout::VERSION_MINOR;
        let reserved = &self.header[at::RESERVED..at::HASH];
        match reserved.iter().position(|&byte| byte != 0) {
            Some(i) if !is_newer => Err(self.corrupt(at::RESERVED + i, "a zero", reserved[i])),
            _ => Ok(()),
        }
    }

    fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.header[offset..offset + 2].try_into().expect("two bytes"))
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.header[offset..offset + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.header[offset..offset + 8].try_into().expect("eight bytes"))
    }

    fn require(&self, offset: usize, what: &str, pair: (u64, u64)) -> Result<(), Error> {
        let (expected, found) = pair;
        if expected == found {
            return Ok(());
        }
        Err(self.corrupt(offset, format!("{what} to be {expected}"), found))
    }

    fn unsupported(&self, offset: usize, expected: impl Display, found: impl Display) -> Error {
        Error::Unsupported(Damage::boxed(self.path, offset as u64, expected, found))
    }

    fn corrupt(&self, offset: usize, expected: impl Display, found: impl Display) -> Error {
        Error::corrupt(self.path, offset as u64, expected, found)
    }
}
