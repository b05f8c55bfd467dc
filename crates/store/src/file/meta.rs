//! The two meta pages of a file, checked before LMDB opens it.

use super::layout::{
    MAGIC, META_PAGES, NO_PAGE, PAGE_SIZES, VERSION, meta as at, page_header,
    tree_record as tree_layout,
};
use super::tree::RawTree;
use super::{corrupt, damage, u16_at, u32_at, u64_at};
use crate::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// More transactions than any store will have.
const MAX_TRANSACTION: u64 = 1 << 62;

/// A meta page whose fields are consistent with each other and with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) page_size: u32,
    pub(crate) map_size: u64,
    pub(crate) free: RawTree,
    pub(crate) main: RawTree,
    pub(crate) last_page: u64,
    pub(crate) transaction: u64,
}

/// Maximum number of reads while other processes change the pages.
const MAX_ATTEMPTS: usize = 100;

/// Returns the meta page of a transaction, or the newest one. Returns `None` if the file is empty.
///
/// Another process may write a page while it is read, so an error is returned only if two reads
/// find the same bytes.
pub(crate) fn read(file: &File, path: &Path, transaction: Option<u64>) -> Result<Option<Meta>> {
    let mut before = None;
    for _ in 0..MAX_ATTEMPTS {
        let mut pages = Pages::default();
        let found = pages.read(file, path, transaction);
        if found.is_ok() || before.as_ref() == Some(&pages) {
            return found;
        }
        before = Some(pages);
    }
    Pages::default().read(file, path, transaction)
}

/// The bytes of both pages, as far as they were read, and the length of the file after that:
/// commits write other pages first, then the meta page that refers to them.
#[derive(Default, PartialEq, Eq)]
struct Pages {
    both: Vec<[u8; at::LEN]>,
    len: u64,
}

impl Pages {
    fn read(&mut self, file: &File, path: &Path, wanted: Option<u64>) -> Result<Option<Meta>> {
        let len = || Ok(file.metadata().map_err(|e| Error::io(path, "length", e))?.len());
        if len()? == 0 {
            return Ok(None);
        }
        let first = read_at(file, path, 0)?;
        self.both.push(first);
        let size = u32_at(&first, at::FREE_TREE + tree_layout::PADDING);
        check_kind(path, 0, &first)?;
        if !PAGE_SIZES.contains(&size) || !size.is_power_of_two() {
            let expected = "a size of pages that is a power of two from 256 to 65536";
            return Err(corrupt(path, at::FREE_TREE as u64, expected, size.to_string()));
        }
        let second = read_at(file, path, u64::from(size))?;
        self.both.push(second);
        self.len = len()?;
        check_kind(path, u64::from(size), &second)?;
        let parsed = [(0, &first), (u64::from(size), &second)]
            .map(|(offset, bytes)| parse(path, offset, bytes, size, self.len));
        choose(path, parsed, wanted).map(Some)
    }
}

fn choose(path: &Path, both: [Result<Meta>; 2], transaction: Option<u64>) -> Result<Meta> {
    if let Some(wanted) = transaction {
        // A page that was being written belongs to the other transaction.
        let found = both.into_iter().flatten().find(|meta| meta.transaction == wanted);
        return found.ok_or_else(|| {
            corrupt(path, 0, format!("a meta page of transaction {wanted}"), "other ones")
        });
    }
    let [first, second] = both;
    let (first, second) = (first?, second?);
    let (index, newest) =
        if second.transaction > first.transaction { (1, second) } else { (0, first) };
    // LMDB chooses the page of a transaction by its number, not by which one is newer.
    if newest.transaction % 2 != index || newest.transaction > MAX_TRANSACTION {
        let place = index * u64::from(newest.page_size) + at::TRANSACTION as u64;
        let expected = if index == 0 { "an even" } else { "an odd" };
        let expected = format!("{expected} number of a transaction, up to {MAX_TRANSACTION}");
        return Err(corrupt(path, place, expected, newest.transaction.to_string()));
    }
    Ok(newest)
}

fn read_at(file: &File, path: &Path, offset: u64) -> Result<[u8; at::LEN]> {
    let mut bytes = [0; at::LEN];
    file.read_exact_at(&mut bytes, offset).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            let expected = format!("{} bytes of a meta page", at::LEN);
            Error::NotAStore(Box::new(damage(path, offset, expected, "the end of the file")))
        }
        _ => Error::io(path, "read", error),
    })?;
    Ok(bytes)
}

fn check_kind(path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    let (magic, version) = (u32_at(bytes, at::MAGIC), u32_at(bytes, at::VERSION));
    if magic != MAGIC {
        let (expected, found) = (format!("{MAGIC:#010x}"), format!("{magic:#010x}"));
        let damage = damage(path, offset + at::MAGIC as u64, expected, found);
        return Err(Error::NotAStore(Box::new(damage)));
    }
    if version != VERSION {
        let (expected, found) = (format!("version {VERSION}"), format!("version {version}"));
        let damage = damage(path, offset + at::VERSION as u64, expected, found);
        return Err(Error::NotAStore(Box::new(damage)));
    }
    Ok(())
}

fn parse(path: &Path, offset: u64, bytes: &[u8], page_size: u32, len: u64) -> Result<Meta> {
    let tree = |at: usize| {
        let range = bytes.get(at..at + tree_layout::LEN);
        range
            .and_then(RawTree::read)
            .ok_or_else(|| corrupt(path, offset, "the record of a tree", "too few bytes"))
    };
    let meta = Meta {
        page_size,
        map_size: u64_at(bytes, at::MAP_SIZE),
        free: tree(at::FREE_TREE)?,
        main: tree(at::MAIN_TREE)?,
        last_page: u64_at(bytes, at::LAST_PAGE),
        transaction: u64_at(bytes, at::TRANSACTION),
    };
    let own = u32_at(bytes, at::FREE_TREE + tree_layout::PADDING);
    if own != page_size {
        let place = offset + (at::FREE_TREE + tree_layout::PADDING) as u64;
        let expected = format!("pages of {page_size} bytes, as the first meta page has it");
        return Err(corrupt(path, place, expected, own.to_string()));
    }
    if u16_at(bytes, page_header::FLAGS) & page_header::META == 0 {
        let found = format!("flags {:#x}", u16_at(bytes, page_header::FLAGS));
        return Err(corrupt(
            path,
            offset + page_header::FLAGS as u64,
            "the flag of a meta page",
            found,
        ));
    }
    if meta.last_page < META_PAGES - 1 || meta.last_page >= 1 << 47 {
        let (place, found) = (offset + at::LAST_PAGE as u64, meta.last_page.to_string());
        return Err(corrupt(path, place, "the number of the last page, from 1 to 2^47", found));
    }
    for (root, place) in [(meta.free.root, at::FREE_TREE), (meta.main.root, at::MAIN_TREE)] {
        // Free pages at the end of a file may never have been written; roots have.
        let inside = (META_PAGES..=meta.last_page).contains(&root)
            && (root + 1) * u64::from(page_size) <= len.next_multiple_of(u64::from(page_size));
        if root != NO_PAGE && !inside {
            let place = offset + (place + tree_layout::ROOT) as u64;
            return Err(corrupt(path, place, "a page within the file", format!("page {root}")));
        }
    }
    Ok(meta)
}
