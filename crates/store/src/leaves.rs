//! Rows read from the leaves of a table, page by page, for long scans in transactions that read.
//! This file holds unsafe code: pages are looked at where they are mapped.
//!
//! A step of LMDB's cursor is a call that finds its place anew. Here a row is the next entry of a
//! page at hand, and only a page is looked for in the branches above it. Everything that a page
//! says is compared with the page and the map before it is used.

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::file::layout::{node, page as at};
use crate::file::tree::RawTree;
use crate::file::{corrupt, u16_at, u64_at};
use crate::rows::Row;
use std::marker::PhantomData;

/// Pages from the root to a leaf; LMDB has no deeper trees.
const DEEPEST: usize = 32;
/// The first page of the map is found from the address of a row: that takes pages which begin at
/// multiples of their size, and the system aligns the map to its own.
const LARGEST_PAGE: usize = 4096;

/// Rows of the next leaf that are asked for ahead.
const FORESEEN: usize = 32;

/// The map, as far as it is in use, as a transaction sees it that reads. Nobody changes its pages,
/// and it does not move, as long as that is open.
#[derive(Clone, Copy)]
struct Map<'t> {
    first: *const u8,
    len: usize,
    page_size: usize,
    txn: PhantomData<&'t [u8]>,
}

/// The rows of a table after one of them.
pub(crate) struct Leaves<'t> {
    map: Map<'t>,
    /// The branches above the leaf, from the root on, with the entry in each that leads there.
    above: Vec<(Page<'t>, usize)>,
    leaf: Page<'t>,
    /// The next entry of the leaf.
    index: usize,
}

/// A branch or leaf.
#[derive(Clone, Copy)]
struct Page<'t> {
    bytes: &'t [u8],
    len: usize,
}

impl<'t> Leaves<'t> {
    /// The rows after one that LMDB found in a transaction that reads, which lends it for `'t`, in
    /// the tree that this record of the main table describes, lent alike. `None` if they are to be
    /// read with a cursor.
    pub(crate) fn after(row: Row<'t>, record: &'t [u8], environment: &Environment) -> Option<Self> {
        let page_size = environment.page_size() as usize;
        let tree = RawTree::read(record).filter(|tree| tree.other_kind().is_none())?;
        if page_size > LARGEST_PAGE {
            return None;
        }
        // Keys lie in leaves, whatever the value's length, and so do records.
        let (leaf, first) = place(row.0, page_size)?;
        let (_, also) = place(record, page_size)?;
        // A page with a wrong number does not agree with another one.
        let len = environment.used_len();
        let map = Map { first, len, page_size, txn: PhantomData };
        if first == also { Self::seek(map, row.0, tree.root, leaf) } else { None }
    }

    /// Goes down from the root to a key. `None` unless that is in this leaf: then the pages are not
    /// what they were taken for.
    fn seek(map: Map<'t>, key: &[u8], root: u64, leaf: *const u8) -> Option<Self> {
        let mut above = Vec::new();
        let mut page = map.page(root)?;
        while page.is_branch() {
            // The first entry of a branch has no key: it is below all others.
            let index = page.first_above(1, key)? - 1;
            above.push((page, index));
            page = map.page(page.child(index)?).filter(|_| above.len() < DEEPEST)?;
        }
        let index = page.first_above(0, key)?;
        let found = page.bytes.as_ptr() == leaf && page.key(index.checked_sub(1)?)? == key;
        found.then_some(Self { map, above, leaf: page, index })
    }

    /// Shows rows to a closure as long as it answers true.
    #[inline(always)]
    pub(crate) fn visit(
        mut self,
        environment: &Environment,
        mut visit: impl FnMut(&'t [u8], &'t [u8]) -> Result<bool>,
    ) -> Result<()> {
        loop {
            for index in self.index..self.leaf.len {
                let row = self.leaf.row(index, self.map);
                let (key, value) = row.ok_or_else(|| self.wrong(environment, "a row"))?;
                if !visit(key, value)? {
                    return Ok(());
                }
            }
            if !self.next_leaf(environment)? {
                return Ok(());
            }
        }
    }

    /// Goes to the next leaf, if there is one.
    #[inline(never)]
    fn next_leaf(&mut self, environment: &Environment) -> Result<bool> {
        let depth = self.above.len();
        while let Some((branch, index)) = self.above.pop() {
            if index + 1 >= branch.len {
                continue;
            }
            self.above.push((branch, index + 1));
            while let Some(&(branch, index)) = self.above.last() {
                let page = branch.child(index).and_then(|child| self.map.page(child));
                // All leaves lie at one depth.
                let fits = |page: &Page<'_>| page.is_branch() == (self.above.len() < depth);
                let Some(page) = page.filter(fits) else {
                    return Err(self.wrong(environment, "a page"));
                };
                if !page.is_branch() {
                    (self.leaf, self.index) = (page, 0);
                    if let Some(next) = branch.child(index + 1) {
                        self.prefetch(next);
                    }
                    return Ok(true);
                }
                self.above.push((page, 0));
            }
        }
        Ok(false)
    }

    /// Asks for what will be read first of the next leaf: where its entries are, and the first of
    /// them, which lie about where those of this one do. The processor foresees the rest itself.
    fn prefetch(&self, next: u64) {
        let Some(bytes) = self.map.bytes(next, 0, self.map.page_size) else { return };
        prefetch(bytes.as_ptr());
        for index in 0..self.leaf.len.min(FORESEEN) {
            if let Some((start, _)) = self.leaf.node(index) {
                prefetch(bytes.as_ptr().wrapping_add(start));
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn wrong(&self, environment: &Environment, what: &str) -> Error {
        let offset = self.leaf.bytes.as_ptr().addr() - self.map.first.addr();
        let expected = format!("{what} of a table at or after this page");
        corrupt(environment.path(), offset as u64, expected, "one that cannot be read")
    }
}

impl<'t> Map<'t> {
    /// A branch or leaf, if that is what lies there.
    fn page(self, number: u64) -> Option<Page<'t>> {
        let bytes = self.bytes(number, 0, self.page_size)?;
        let u16_at = |at| usize::from(u16_at(bytes, at));
        let (lower, upper) = (u16_at(at::LOWER), u16_at(at::UPPER));
        let kind = u16_at(at::FLAGS) as u16 & (at::BRANCH | at::LEAF | at::LEAF2 | at::OVERFLOW);
        let fits = u64_at(bytes, at::NUMBER) == number
            && (kind == at::BRANCH || kind == at::LEAF)
            && (at::HEADER_LEN..=upper).contains(&lower)
            && upper <= bytes.len();
        let len = lower.saturating_sub(at::HEADER_LEN) / 2;
        (fits && len > 0).then_some(Page { bytes, len })
    }

    /// Bytes from an offset in a page on, which may go on in the pages that follow.
    #[inline]
    fn bytes(self, page: u64, offset: usize, len: usize) -> Option<&'t [u8]> {
        let start = usize::try_from(page).ok()?.checked_mul(self.page_size)?.checked_add(offset)?;
        let end = start.checked_add(len)?;
        if end > self.len {
            return None;
        }
        // SAFETY: the range is within what is in use of the map, which stays where it is and is not
        // changed in pages that this transaction sees. As LMDB does, this trusts that the file has
        // all pages up to the last one.
        Some(unsafe { std::slice::from_raw_parts(self.first.wrapping_add(start), len) })
    }
}

impl<'t> Page<'t> {
    fn is_branch(&self) -> bool {
        u16_at(self.bytes, at::FLAGS) & at::BRANCH != 0
    }

    /// Where an entry begins, and its header.
    #[inline(always)]
    fn node(&self, index: usize) -> Option<(usize, u64)> {
        let start = usize::from(u16_at(self.bytes, at::HEADER_LEN + 2 * index));
        let header = self.bytes.get(start..)?.first_chunk::<{ node::HEADER_LEN }>()?;
        Some((start + node::HEADER_LEN, u64::from_le_bytes(*header)))
    }

    fn key(&self, index: usize) -> Option<&'t [u8]> {
        let (start, header) = self.node(index)?;
        self.bytes.get(start..)?.get(..key_len(header))
    }

    /// The page below an entry of a branch.
    fn child(&self, index: usize) -> Option<u64> {
        if index >= self.len {
            return None;
        }
        // Its number has the bits of length and flags.
        Some(self.node(index)?.1 & ((1 << (8 * node::KEY_LEN)) - 1))
    }

    /// The first entry, from one on, whose key is above another one.
    fn first_above(&self, from: usize, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (from, self.len);
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle)? > key { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }

    #[inline(always)]
    fn row(&self, index: usize, map: Map<'t>) -> Option<Row<'t>> {
        let (start, header) = self.node(index)?;
        let entry = self.bytes.get(start..)?;
        let (key, rest) = entry.split_at_checked(key_len(header))?;
        let len = (header & 0xFFFF_FFFF) as usize;
        let value = match (header >> (8 * node::FLAGS)) as u16 {
            0 => rest.get(..len)?,
            node::BIG => {
                let page = u64::from_le_bytes(*rest.first_chunk()?);
                map.bytes(page, at::HEADER_LEN, len)?
            }
            _ => return None,
        };
        Some((key, value))
    }
}

#[inline(always)]
fn key_len(header: u64) -> usize {
    (header >> (8 * node::KEY_LEN)) as usize
}

/// The page that has these bytes, which LMDB lent from a leaf, and where the map begins if the page
/// has the number that it says.
fn place(bytes: &[u8], page_size: usize) -> Option<(*const u8, *const u8)> {
    let page = bytes.as_ptr().wrapping_sub(bytes.as_ptr().addr() % page_size);
    // SAFETY: the page of bytes that are lent from the map.
    let number = u64::from_le_bytes(unsafe { page.cast::<[u8; 8]>().read() });
    let offset = usize::try_from(number).ok()?.checked_mul(page_size)?;
    (offset < page.addr()).then(|| (page, page.wrapping_sub(offset)))
}

/// Asks for a line of memory.
#[inline(always)]
fn prefetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address does nothing that can be seen.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
