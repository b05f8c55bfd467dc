//! The entries of one page.

use super::layout::{node, page_header as at, tree_record};
use super::tree::RawTree;
use super::{corrupt, u16_at, u32_at, u64_at};
use crate::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The kind of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Branch,
    Leaf,
    /// A leaf of duplicates of one size.
    Leaf2,
    Overflow,
}

/// A page whose header is valid for its place in the file.
#[derive(Debug)]
pub(crate) struct Page<'p> {
    path: &'p Path,
    /// The offset of the page in the file.
    offset: u64,
    pub(crate) kind: Kind,
    bytes: Vec<u8>,
}

/// An entry of a branch page: `page` has the keys from `key` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Branch<'p> {
    pub(crate) key: &'p [u8],
    pub(crate) page: u64,
}

/// An entry of a leaf page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf<'p> {
    pub(crate) key: &'p [u8],
    pub(crate) value: LeafValue<'p>,
}

/// The location of the value of a leaf's entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LeafValue<'p> {
    Here(&'p [u8]),
    /// In consecutive overflow pages, from this one on.
    Overflow {
        page: u64,
        len: u32,
    },
    /// A table, or a tree of duplicates.
    Tree(RawTree, Nested),
    /// Duplicates in a page within this one.
    Duplicates(&'p [u8]),
}

/// The kind of a tree within a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nested {
    Table,
    Duplicates,
}

impl<'p> Page<'p> {
    pub(crate) fn read(file: &File, path: &'p Path, number: u64, size: u32) -> Result<Self> {
        let offset = number * u64::from(size);
        let mut bytes = vec![0; size as usize];
        file.read_exact_at(&mut bytes, offset).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                corrupt(path, offset, format!("page {number}"), "the end of the file")
            }
            _ => Error::io(path, "read", error),
        })?;
        let found = u64_at(&bytes, at::NUMBER);
        if found != number {
            let (expected, found) = (format!("page {number}"), format!("page {found}"));
            return Err(corrupt(path, offset, expected, found));
        }
        let flags = u16_at(&bytes, at::FLAGS);
        let kind = match flags & (at::BRANCH | at::LEAF | at::OVERFLOW | at::META | at::LEAF2) {
            at::BRANCH => Kind::Branch,
            at::LEAF => Kind::Leaf,
            at::OVERFLOW => Kind::Overflow,
            both if both == at::LEAF | at::LEAF2 => Kind::Leaf2,
            _ => {
                let place = offset + at::FLAGS as u64;
                let expected = "flags of a branch, leaf or overflow page";
                return Err(corrupt(path, place, expected, format!("{flags:#x}")));
            }
        };
        let page = Self { path, offset, kind, bytes };
        if kind != Kind::Overflow {
            page.check_bounds()?;
        }
        Ok(page)
    }

    fn check_bounds(&self) -> Result<()> {
        let lower = usize::from(u16_at(&self.bytes, at::LOWER));
        let upper = usize::from(u16_at(&self.bytes, at::UPPER));
        // In pages of 64 KiB the upper bound of an empty page is zero, but no such page is in a
        // tree.
        if lower < at::HEADER_LEN || lower > upper || upper > self.bytes.len() || lower % 2 != 0 {
            let expected = "the bounds of the free space in order";
            let found = format!("{lower} and {upper}");
            return Err(corrupt(self.path, self.offset + at::LOWER as u64, expected, found));
        }
        Ok(())
    }

    /// Returns the number of consecutive overflow pages that this one begins.
    pub(crate) fn overflow_count(&self) -> u32 {
        u32_at(&self.bytes, at::COUNT)
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        (usize::from(u16_at(&self.bytes, at::LOWER)).saturating_sub(at::HEADER_LEN)) / 2
    }

    /// Returns the offset of an entry within the page, and its key.
    fn node(&self, index: usize) -> Result<(usize, &[u8])> {
        let start = usize::from(u16_at(&self.bytes, at::HEADER_LEN + 2 * index));
        let upper = usize::from(u16_at(&self.bytes, at::UPPER));
        let key = start + node::HEADER_LEN;
        let key_len = usize::from(u16_at(&self.bytes, start + node::KEY_LEN));
        match self.bytes.get(key..key + key_len) {
            Some(key) if start >= upper => Ok((start, key)),
            _ => Err(self.wrong(index, "an entry within the page", format!("one at {start}"))),
        }
    }

    /// Returns the offset of an entry's key in the file.
    pub(crate) fn key_offset(&self, index: usize) -> Result<u64> {
        let (start, _) = self.node(index)?;
        Ok(self.offset + (start + node::HEADER_LEN) as u64)
    }

    /// Returns an entry of a branch page. The key of the first one is ignored: it covers all keys
    /// below the second.
    pub(crate) fn branch(&self, index: usize) -> Result<Branch<'_>> {
        let (start, key) = self.node(index)?;
        let low = u64::from(u32_at(&self.bytes, start + node::LOW));
        let high = u64::from(u16_at(&self.bytes, start + node::FLAGS));
        Ok(Branch { key, page: high << 32 | low })
    }

    /// Returns an entry of a leaf page.
    pub(crate) fn leaf(&self, index: usize) -> Result<Leaf<'_>> {
        let (start, key) = self.node(index)?;
        let len = u32_at(&self.bytes, start + node::LOW);
        let flags = u16_at(&self.bytes, start + node::FLAGS);
        let data = start + node::HEADER_LEN + key.len();
        let bytes = |len: usize| {
            let found = self.bytes.get(data..data + len);
            found
                .ok_or_else(|| self.wrong(index, "a value within the page", format!("{len} bytes")))
        };
        let value = match flags {
            0 => LeafValue::Here(bytes(len as usize)?),
            node::BIG => LeafValue::Overflow { page: u64_at(bytes(8)?, 0), len },
            node::DUPLICATES => LeafValue::Duplicates(bytes(len as usize)?),
            flags if flags & node::TREE != 0 && flags & node::BIG == 0 => {
                let tree = RawTree::read(bytes(len as usize)?);
                let tree = tree.ok_or_else(|| {
                    let expected = format!("{} bytes of a tree", tree_record::LEN);
                    self.wrong(index, expected, format!("{len} bytes"))
                })?;
                let nested = flags & node::DUPLICATES == 0;
                LeafValue::Tree(tree, if nested { Nested::Table } else { Nested::Duplicates })
            }
            _ => return Err(self.wrong(index, "flags of a value", format!("{flags:#x}"))),
        };
        Ok(Leaf { key, value })
    }

    /// Checks that the entries of a branch or leaf take exactly the bytes between its free space
    /// and the end of the page. LMDB moves entries together whenever it deletes one.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if an entry is damaged, or if there are more or fewer bytes.
    pub(crate) fn check_filled(&self) -> Result<()> {
        let mut filled = 0;
        for index in 0..self.len() {
            let len = match self.kind {
                Kind::Branch => node::HEADER_LEN + self.branch(index)?.key.len(),
                Kind::Leaf => self.leaf_len(index)?,
                Kind::Leaf2 | Kind::Overflow => return Ok(()),
            };
            filled += len.next_multiple_of(2);
        }
        let upper = usize::from(u16_at(&self.bytes, at::UPPER));
        let expected = self.bytes.len() - upper;
        if filled == expected {
            return Ok(());
        }
        let expected = format!("{expected} bytes of entries, from byte {upper} of the page on");
        let found = format!("{filled} bytes of entries");
        Err(corrupt(self.path, self.offset + at::UPPER as u64, expected, found))
    }

    /// Returns the bytes that an entry of a leaf takes within the page.
    fn leaf_len(&self, index: usize) -> Result<usize> {
        let leaf = self.leaf(index)?;
        let value_len = match leaf.value {
            LeafValue::Here(bytes) | LeafValue::Duplicates(bytes) => bytes.len(),
            LeafValue::Overflow { .. } => size_of::<u64>(),
            LeafValue::Tree(..) => tree_record::LEN,
        };
        Ok(node::HEADER_LEN + leaf.key.len() + value_len)
    }

    /// Returns the error for a damaged entry.
    #[cold]
    pub(crate) fn wrong(
        &self,
        index: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Error {
        let place = self.offset + (at::HEADER_LEN + 2 * index) as u64;
        corrupt(self.path, place, expected, found)
    }
}
