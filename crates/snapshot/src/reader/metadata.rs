//! The metadata of a snapshot.

use super::file::SnapshotFile;
use crate::error::{Error, Result};
use crate::format::header::AdditionalSection;
use crate::format::layout::{additional, header as header_at};
use crate::format::manifest::Manifest;
use crate::format::metadata::decode;
use std::path::Path;

/// The metadata of a snapshot, from [`Snapshot::metadata`](crate::Snapshot::metadata): pairs of a
/// name and a value that the writer was given. Any names can be used; `docs/formats/snapshot.md`
/// has the meaning of some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata<'a> {
    /// The pairs, in ascending order of the names.
    pairs: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Metadata<'a> {
    /// Checks and decodes the metadata of a file.
    pub(super) fn of_file(file: &'a SnapshotFile) -> Result<Self> {
        let Some((number, &AdditionalSection { section, hash, .. })) = file.header.metadata()
        else {
            return Ok(Self::default());
        };
        let entry = header_at::ADDITIONAL + number * additional::ENTRY_LEN;
        let bytes = file.section(section);
        file.verify_section_hash(
            (entry + additional::CHECKSUM) as u64,
            "the metadata",
            bytes,
            hash,
        )?;
        match decode(bytes) {
            Ok(pairs) => Ok(Self { pairs }),
            Err(e) => Err(file.corrupt(section.offset + e.offset, e.expected, e.found)),
        }
    }

    /// Decodes the metadata of a set, whose checksum is verified.
    pub(super) fn of_set(path: &Path, manifest: &'a Manifest) -> Result<Self> {
        match decode(&manifest.metadata) {
            Ok(pairs) => Ok(Self { pairs }),
            Err(e) => {
                let offset = manifest.metadata_offset() + e.offset;
                Err(Error::corrupt(path, offset, e.expected, e.found))
            }
        }
    }

    /// Returns the value of a name, or `None` if the metadata does not have the name.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let at = self.pairs.binary_search_by_key(&name, |(name, _)| name).ok()?;
        Some(self.pairs[at].1)
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns an iterator over the pairs of name and value, in ascending order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.pairs.iter().copied()
    }
}
