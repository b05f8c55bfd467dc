//! Verification of all pages of a store, read without LMDB: every page is where its parent says and
//! belongs to one tree, entries fill it, keys are in order and within the bounds of their parents,
//! counts are right, and each page is either in use or free.

use crate::error::{Error, Result};
use crate::file::corrupt;
use crate::file::layout::{META_PAGES, NO_PAGE, page_header as page_layout};
use crate::file::meta::{self, Meta};
use crate::file::page::{Kind, LeafValue, Nested, Page};
use crate::file::tree::{Order, RawTree};
use crate::file_names::DATA;
use std::cmp::Ordering;
use std::fs::File;
use std::path::Path;

/// Maximum number of levels of a tree, as in LMDB.
const MAX_DEPTH: u16 = 32;
/// Maximum nesting of tables: the main table has all others.
const MAX_NESTING: u32 = 2;
/// Number of pages between two calls of `progress`.
const PAGES_PER_PROGRESS: u64 = 1024;

/// The result of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of the transaction whose state was verified.
    pub transaction: u64,
    /// Number of pages of the file, including the two meta pages.
    pub pages: u64,
    /// Number of free pages, which later transactions reuse.
    pub free_pages: u64,
    /// Number of pages that are neither in use nor free: wasted space, but no damage. LMDB refuses
    /// to compact such a file. To reclaim the space, load all rows into a new store.
    pub lost_pages: u64,
    /// Number of tables, including the main table and system tables.
    pub tables: u64,
    /// Number of rows of all tables, including those of system tables and expired rows. Names of
    /// tables are not counted.
    pub entries: u64,
}

/// Verifies all pages of the store in a folder without opening it, even if it is too damaged to be
/// opened. No process may write to it meanwhile. `folder` may also be the path of the data file.
/// Calls `progress` with the number of verified pages and the number of all pages, every 1024 pages
/// and at the end.
///
/// # Errors
///
/// [`Error::Corrupt`] or [`Error::NotAStore`] with the place of the first damage, and [`Error::Io`]
/// if the file cannot be read.
pub fn verify_closed(folder: &Path, progress: impl FnMut(u64, u64)) -> Result<Verified> {
    let path = if folder.is_dir() { folder.join(DATA) } else { folder.to_owned() };
    let file = File::open(&path).map_err(|e| Error::io(&path, "open", e))?;
    match meta::read(&file, &path, None)? {
        Some(meta) => Walk::new(&file, &path, meta, progress).verify(),
        None => Err(empty_file(&path)),
    }
}

/// Verifies all pages of a file, from a meta page on. Calls `progress` as [`verify_closed`] does.
pub(crate) fn verify_pages(
    file: &File,
    path: &Path,
    meta: Meta,
    progress: impl FnMut(u64, u64),
) -> Result<Verified> {
    Walk::new(file, path, meta, progress).verify()
}

/// Returns the number of free pages of the transaction with this meta page.
pub(crate) fn free_pages(file: &File, path: &Path, meta: Meta) -> Result<u64> {
    let mut walk = Walk::new(file, path, meta, |_, _| ());
    walk.free_list()?;
    Ok(walk.verified.free_pages)
}

/// Checks that a file has all pages in use. Missing pages at its end that were never written
/// usually are free: then only the list of free pages is read, and otherwise all pages.
pub(crate) fn check_end(file: &File, path: &Path, meta: Meta) -> Result<()> {
    let mut walk = Walk::new(file, path, meta, |_, _| ());
    let pages_in_file = walk.file_len()? / u64::from(meta.page_size);
    if pages_in_file > meta.last_page {
        return Ok(());
    }
    walk.map_pages()?;
    walk.free_list()?;
    if (pages_in_file..=meta.last_page).all(|page| walk.has_seen(page)) {
        return Ok(());
    }
    Walk::new(file, path, meta, |_, _| ()).verify().map(drop)
}

pub(crate) fn empty_file(path: &Path) -> Error {
    corrupt(path, 0, "two meta pages", "an empty file")
}

/// A walk over all pages.
struct Walk<'f, P> {
    file: &'f File,
    path: &'f Path,
    meta: Meta,
    /// One bit for each page: whether it was found in a tree or in the list of free pages.
    seen: Vec<u64>,
    done: u64,
    verified: Verified,
    progress: P,
}

/// Counts of a walk over a tree.
#[derive(Default)]
struct Counted {
    branch_pages: u64,
    leaf_pages: u64,
    overflow_pages: u64,
    entries: u64,
}

/// The bounds of the keys below a page.
#[derive(Clone, Copy)]
struct KeyBounds<'k> {
    from: Option<&'k [u8]>,
    before: Option<&'k [u8]>,
}

impl<'f, P: FnMut(u64, u64)> Walk<'f, P> {
    fn new(file: &'f File, path: &'f Path, meta: Meta, progress: P) -> Self {
        let pages = meta.last_page + 1;
        let verified = Verified { transaction: meta.transaction, pages, ..Verified::default() };
        Self { file, path, meta, seen: Vec::new(), done: 0, verified, progress }
    }

    fn verify(mut self) -> Result<Verified> {
        self.map_pages()?;
        for page in 0..META_PAGES {
            self.mark_used(page, 1, 0)?;
        }
        self.free_list()?;
        let main = self.meta.main;
        self.table(main, 0)?;
        let seen: u64 = self.seen.iter().map(|word| u64::from(word.count_ones())).sum();
        let pages = self.verified.pages;
        self.verified.lost_pages = pages - seen;
        (self.progress)(pages, pages);
        Ok(self.verified)
    }

    fn file_len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| Error::io(self.path, "length", e))?.len())
    }

    /// Allocates one bit for each page. Limits the number of pages by the length of the file, since
    /// a damaged number could be huge.
    fn map_pages(&mut self) -> Result<()> {
        let len = self.file_len()?;
        let pages = self.verified.pages;
        let max = len / u64::from(self.meta.page_size) + (1 << 24);
        if pages > max {
            let expected = format!("at most {max} pages in a file of {len} bytes");
            return Err(corrupt(self.path, 0, expected, pages.to_string()));
        }
        self.seen = vec![0; pages.div_ceil(64) as usize];
        Ok(())
    }

    fn has_seen(&self, page: u64) -> bool {
        let word = self.seen.get((page / 64) as usize);
        word.is_some_and(|word| word & (1 << (page % 64)) != 0)
    }

    /// Marks pages as in use or free, after checking that they are not marked already.
    fn mark_used(&mut self, first: u64, count: u64, parent: u64) -> Result<()> {
        let place = parent * u64::from(self.meta.page_size);
        for page in first..first.saturating_add(count) {
            if page > self.meta.last_page {
                let expected = format!("a page up to {}", self.meta.last_page);
                return Err(corrupt(self.path, place, expected, format!("page {page}")));
            }
            let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
            // Without a page map only counts are needed.
            let Some(word) = self.seen.get_mut(word) else { continue };
            if *word & bit != 0 {
                let found = format!("page {page} a second time");
                return Err(corrupt(self.path, place, "a page that is in use once", found));
            }
            *word |= bit;
            self.done += 1;
            if self.done.is_multiple_of(PAGES_PER_PROGRESS) {
                (self.progress)(self.done, self.verified.pages);
            }
        }
        Ok(())
    }

    /// Walks the tree of free pages: transactions, and the pages that each freed.
    fn free_list(&mut self) -> Result<()> {
        let tree = self.meta.free;
        let mut lists = Vec::new();
        // Its keys are transaction numbers, whatever its flags are.
        self.tree(tree, Order::Integers(&[8]), &mut |walk, page, leaf, index| {
            let list = match leaf.value {
                LeafValue::Here(bytes) => bytes.to_vec(),
                LeafValue::Overflow { page: first, len } => walk.long_value(first, len)?,
                _ => return Err(page.wrong(index, "a list of pages", "a tree")),
            };
            lists.push(list);
            Ok(())
        })?;
        for list in lists {
            self.free_record(&list)?;
        }
        Ok(())
    }

    /// Marks the pages of a record of free pages: their number, then the pages in descending order.
    fn free_record(&mut self, list: &[u8]) -> Result<()> {
        let (words, _) = list.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let count = words.next().unwrap_or(0);
        if count as usize > words.len() {
            let expected = format!("a list of {count} free pages");
            return Err(corrupt(self.path, 0, expected, format!("{} of them", words.len())));
        }
        for page in words.take(count as usize) {
            self.mark_used(page, 1, 0)?;
            self.verified.free_pages += 1;
        }
        Ok(())
    }

    /// Walks a table, and the tables within it.
    fn table(&mut self, tree: RawTree, nesting: u32) -> Result<()> {
        self.verified.tables += 1;
        let mut within = Vec::new();
        let mut duplicates = 0;
        let counted = self.tree(tree, tree.order(), &mut |walk, page, leaf, index| {
            match leaf.value {
                LeafValue::Tree(tree, Nested::Table) => within.push(tree),
                LeafValue::Tree(tree, Nested::Duplicates) => {
                    // Values of one size are in pages without headers of their own.
                    duplicates += walk.duplicates(tree)?.saturating_sub(1);
                }
                LeafValue::Duplicates(inner) => duplicates += inner_entries(inner)?.max(1) - 1,
                LeafValue::Overflow { .. } | LeafValue::Here(_) => {}
            }
            if nesting >= MAX_NESTING && !within.is_empty() {
                return Err(page.wrong(index, "a row", "a table within a table"));
            }
            Ok(())
        })?;
        let entries = counted.entries + duplicates;
        self.check_count("entries", tree.entries, entries)?;
        self.verified.entries += entries - within.len() as u64;
        for tree in within {
            self.table(tree, nesting + 1)?;
        }
        Ok(())
    }

    /// Walks the values of one key, in a tree of their own. Returns their number.
    fn duplicates(&mut self, tree: RawTree) -> Result<u64> {
        let counted = self.tree(tree, Order::Unknown, &mut |_, _, _, _| Ok(()))?;
        self.check_count("duplicates", tree.entries, counted.entries)?;
        Ok(counted.entries)
    }

    /// Walks all pages of a tree, and calls `each` with the entries of its leaves.
    fn tree(&mut self, tree: RawTree, order: Order, each: &mut Each<'_, 'f, P>) -> Result<Counted> {
        let mut counted = Counted::default();
        if tree.root == NO_PAGE {
            self.check_count("entries of a tree without pages", tree.entries, 0)?;
            return Ok(counted);
        }
        if tree.depth == 0 || tree.depth > MAX_DEPTH {
            let expected = format!("1 to {MAX_DEPTH} levels of a tree");
            return Err(corrupt(self.path, 0, expected, tree.depth.to_string()));
        }
        let bounds = KeyBounds { from: None, before: None };
        let level = Level { depth: tree.depth, order, duplicates: tree.has_duplicates() };
        self.page((tree.root, 0), level, bounds, &mut counted, each)?;
        // From 0.9.36 on, LMDB adds pages of trees of duplicates to the counts of the table when it
        // splits a page, and does not subtract all of them later: these counts mean nothing.
        if order != Order::Unknown && !tree.has_duplicates() {
            self.check_count("branch pages", tree.branch_pages, counted.branch_pages)?;
            self.check_count("leaf pages", tree.leaf_pages, counted.leaf_pages)?;
            self.check_count("overflow pages", tree.overflow_pages, counted.overflow_pages)?;
        }
        Ok(counted)
    }

    fn page(
        &mut self,
        (number, parent): (u64, u64),
        level: Level,
        bounds: KeyBounds<'_>,
        counted: &mut Counted,
        each: &mut Each<'_, 'f, P>,
    ) -> Result<()> {
        self.mark_used(number, 1, parent)?;
        let page = Page::read(self.file, self.path, number, self.meta.page_size)?;
        page.check_filled()?;
        match (page.kind, level.depth) {
            (Kind::Branch, 2..) => self.branch(&page, number, level, bounds, counted, each),
            (Kind::Leaf, 1) => self.leaf(&page, level, bounds, counted, each),
            (Kind::Leaf2, 1) if level.order == Order::Unknown => {
                counted.leaf_pages += 1;
                counted.entries += page.len() as u64;
                Ok(())
            }
            (kind, depth) => {
                let expected = if depth == 1 { "a leaf" } else { "a branch" };
                let place = number * u64::from(self.meta.page_size) + page_layout::FLAGS as u64;
                Err(corrupt(self.path, place, expected, format!("{kind:?}")))
            }
        }
    }

    fn branch(
        &mut self,
        page: &Page<'_>,
        number: u64,
        level: Level,
        bounds: KeyBounds<'_>,
        counted: &mut Counted,
        each: &mut Each<'_, 'f, P>,
    ) -> Result<()> {
        counted.branch_pages += 1;
        if page.len() < 2 {
            return Err(page.wrong(0, "a branch of two pages or more", page.len().to_string()));
        }
        let mut before: Option<&[u8]> = None;
        for index in 0..page.len() {
            let entry = page.branch(index)?;
            let next =
                if index + 1 < page.len() { Some(page.branch(index + 1)?.key) } else { None };
            // The first key is not compared.
            let from = if index == 0 { bounds.from } else { Some(entry.key) };
            if index > 0 {
                check_key(page, index, entry.key, before, (bounds, level.order))?;
                before = Some(entry.key);
            }
            let bounds = KeyBounds { from, before: next.or(bounds.before) };
            let level = Level { depth: level.depth - 1, ..level };
            self.page((entry.page, number), level, bounds, counted, each)?;
        }
        Ok(())
    }

    fn leaf(
        &mut self,
        page: &Page<'_>,
        level: Level,
        bounds: KeyBounds<'_>,
        counted: &mut Counted,
        each: &mut Each<'_, 'f, P>,
    ) -> Result<()> {
        counted.leaf_pages += 1;
        let mut before: Option<Vec<u8>> = None;
        for index in 0..page.len() {
            let leaf = page.leaf(index)?;
            check_key(page, index, leaf.key, before.as_deref(), (bounds, level.order))?;
            before = Some(leaf.key.to_vec());
            match leaf.value {
                LeafValue::Overflow { page: first, len } => {
                    counted.overflow_pages += self.overflow(first, len)?;
                }
                LeafValue::Duplicates(_) | LeafValue::Tree(_, Nested::Duplicates)
                    if !level.duplicates =>
                {
                    return Err(page.wrong(index, "one value for a key", "several values"));
                }
                _ => {}
            }
            counted.entries += 1;
            each(self, page, leaf, index)?;
        }
        Ok(())
    }

    /// Checks the overflow pages of a long value. Returns their number, which is greater than
    /// necessary if a shorter value replaced a longer one.
    fn overflow(&mut self, first: u64, len: u32) -> Result<u64> {
        let size = u64::from(self.meta.page_size);
        if first > self.meta.last_page {
            let expected = format!("a page up to {}", self.meta.last_page);
            return Err(corrupt(self.path, 0, expected, format!("page {first} for a long value")));
        }
        let min_pages = (page_layout::HEADER_LEN as u64 + u64::from(len)).div_ceil(size);
        let page = Page::read(self.file, self.path, first, size as u32)?;
        let count = u64::from(page.overflow_count());
        if page.kind != Kind::Overflow || count < min_pages {
            let (expected, found) =
                (format!("{min_pages} overflow pages"), format!("{:?}", page.kind));
            return Err(corrupt(self.path, first * size, expected, format!("{found} of {count}")));
        }
        self.mark_used(first, count, first)?;
        let end = self.file_len()?;
        if (first + min_pages) * size > end {
            let expected = format!("{min_pages} pages of a long value");
            return Err(corrupt(self.path, first * size, expected, "the end of the file"));
        }
        Ok(count)
    }

    /// Returns a long value.
    fn long_value(&self, first: u64, len: u32) -> Result<Vec<u8>> {
        // Its pages were checked, and the file has them.
        use std::os::unix::fs::FileExt;
        let at = first * u64::from(self.meta.page_size) + page_layout::HEADER_LEN as u64;
        let mut bytes = vec![0; len as usize];
        let read = self.file.read_exact_at(&mut bytes, at);
        read.map_err(|e| Error::io(self.path, "read", e))?;
        Ok(bytes)
    }

    fn check_count(&self, what: &str, expected: u64, found: u64) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        Err(corrupt(self.path, 0, format!("{expected} {what}"), found.to_string()))
    }
}

/// A callback for the entries of leaves.
type Each<'e, 'f, P> =
    dyn FnMut(&mut Walk<'f, P>, &Page<'_>, crate::file::page::Leaf<'_>, usize) -> Result<()> + 'e;

/// Parameters of the walk below a page.
#[derive(Clone, Copy)]
struct Level {
    /// Number of levels from this page to the leaves.
    depth: u16,
    order: Order,
    /// Whether keys can have several values.
    duplicates: bool,
}

/// Checks that a key is above the one before it and within the bounds of its parents.
fn check_key(
    page: &Page<'_>,
    index: usize,
    key: &[u8],
    before: Option<&[u8]>,
    (bounds, order): (KeyBounds<'_>, Order),
) -> Result<()> {
    if order == Order::Unknown {
        return Ok(());
    }
    let shown = |key: &[u8]| format!("\"{}\"", key.escape_ascii());
    if let Order::Integers(lengths) = order
        && !lengths.contains(&key.len())
    {
        let expected = format!("an integer, of {lengths:?} bytes");
        return Err(page.wrong(index, expected, shown(key)));
    }
    let is_below = |one: &[u8], other: &[u8]| compare(order, one, other) == Ordering::Less;
    if let Some(before) = before.filter(|before| !is_below(before, key)) {
        let expected = format!("a key above {}", shown(before));
        return Err(page.wrong(index, expected, shown(key)));
    }
    if let Some(from) = bounds.from.filter(|from| is_below(key, from)) {
        let expected = format!("a key from {} on, as its parent page requires", shown(from));
        return Err(page.wrong(index, expected, shown(key)));
    }
    if let Some(end) = bounds.before.filter(|end| !is_below(key, end)) {
        let expected = format!("a key below {}, as its parent page requires", shown(end));
        return Err(page.wrong(index, expected, shown(key)));
    }
    Ok(())
}

fn compare(order: Order, one: &[u8], other: &[u8]) -> Ordering {
    match order {
        Order::Bytes | Order::Unknown => one.cmp(other),
        // All keys of such a table have one length; another length is out of order.
        Order::Integers(_) if one.len() != other.len() => Ordering::Equal,
        // Integers are little-endian, as the file.
        Order::Reverse | Order::Integers(_) => one.iter().rev().cmp(other.iter().rev()),
    }
}

/// Returns the number of entries of a page of duplicates within a leaf.
fn inner_entries(page: &[u8]) -> Result<u64> {
    let lower = page.get(page_layout::LOWER..).and_then(<[u8]>::first_chunk::<2>);
    let lower = lower.map_or(0, |bytes| u64::from(u16::from_le_bytes(*bytes)));
    let entries = lower.checked_sub(page_layout::HEADER_LEN as u64).map(|bytes| bytes / 2);
    entries.ok_or_else(|| Error::decode("a page of duplicates", "bounds within its header"))
}
