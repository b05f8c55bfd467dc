//! Offsets within a file of LMDB 0.9, on a little-endian machine of 64 bits.

/// The first field of a meta page after the page header.
pub(crate) const MAGIC: u32 = 0xBEEF_C0DE;
/// The supported version of the format.
pub(crate) const VERSION: u32 = 1;
/// The root of a tree without entries.
pub(crate) const NO_PAGE: u64 = u64::MAX;
/// The minimum and maximum size of a page in bytes.
pub(crate) const PAGE_SIZES: std::ops::RangeInclusive<u32> = 256..=65_536;
/// The number of meta pages, which precede all other pages.
pub(crate) const META_PAGES: u64 = 2;

/// The header of a page.
pub(crate) mod page_header {
    pub(crate) const NUMBER: usize = 0;
    pub(crate) const FLAGS: usize = 10;
    pub(crate) const LOWER: usize = 12;
    pub(crate) const UPPER: usize = 14;
    /// In an overflow page, the number of consecutive pages, in place of lower and upper.
    pub(crate) const COUNT: usize = 12;
    pub(crate) const HEADER_LEN: usize = 16;

    pub(crate) const BRANCH: u16 = 0x01;
    pub(crate) const LEAF: u16 = 0x02;
    pub(crate) const OVERFLOW: u16 = 0x04;
    pub(crate) const META: u16 = 0x08;
    /// A leaf of duplicates of one size.
    pub(crate) const LEAF2: u16 = 0x20;
}

/// A meta page; offsets from the start of the page.
pub(crate) mod meta {
    use super::page_header::HEADER_LEN;

    pub(crate) const MAGIC: usize = HEADER_LEN;
    pub(crate) const VERSION: usize = HEADER_LEN + 4;
    pub(crate) const MAP_SIZE: usize = HEADER_LEN + 16;
    /// The tree of free pages. Its padding has the page size.
    pub(crate) const FREE_TREE: usize = HEADER_LEN + 24;
    pub(crate) const MAIN_TREE: usize = FREE_TREE + super::tree_record::LEN;
    pub(crate) const LAST_PAGE: usize = MAIN_TREE + super::tree_record::LEN;
    pub(crate) const TRANSACTION: usize = LAST_PAGE + 8;
    pub(crate) const LEN: usize = TRANSACTION + 8;
}

/// The record of a tree, in a meta page or as the value of a table's name.
pub(crate) mod tree_record {
    pub(crate) const PADDING: usize = 0;
    pub(crate) const FLAGS: usize = 4;
    pub(crate) const DEPTH: usize = 6;
    pub(crate) const BRANCH_PAGES: usize = 8;
    pub(crate) const LEAF_PAGES: usize = 16;
    pub(crate) const OVERFLOW_PAGES: usize = 24;
    pub(crate) const ENTRIES: usize = 32;
    pub(crate) const ROOT: usize = 40;
    pub(crate) const LEN: usize = 48;

    /// Keys are compared from their last byte.
    pub(crate) const REVERSE_KEYS: u16 = 0x02;
    /// A key can have several values.
    pub(crate) const DUPLICATES: u16 = 0x04;
    /// Keys are integers in the machine's byte order.
    pub(crate) const INTEGER_KEYS: u16 = 0x08;
    /// Flags of tables that are not ordered keys with one value each.
    pub(crate) const OTHER_KINDS: u16 = REVERSE_KEYS | DUPLICATES | INTEGER_KEYS;
}

/// A node: an entry of a branch or leaf page.
pub(crate) mod node {
    /// 32 bits of the length of the value, or of a page number.
    pub(crate) const LOW: usize = 0;
    /// The flags of a value, or 16 more bits of a page number.
    pub(crate) const FLAGS: usize = 4;
    pub(crate) const KEY_LEN: usize = 6;
    pub(crate) const HEADER_LEN: usize = 8;

    /// The value is in overflow pages; the node has the number of the first.
    pub(crate) const BIG: u16 = 0x01;
    /// The value is the record of a tree.
    pub(crate) const TREE: u16 = 0x02;
    /// The key has several values.
    pub(crate) const DUPLICATES: u16 = 0x04;
}

const _: () = assert!(meta::LEN == 152);
const _: () = assert!(tree_record::LEN == tree_record::ROOT + 8);
