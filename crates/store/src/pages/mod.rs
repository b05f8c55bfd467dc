//! Pages of tables, read in the memory map and checked before they are used.
//!
//! Read transactions do not read through LMDB, which trusts pages: damage could cause wrong rows,
//! missing keys or a crash. `map` has the pages and their entries, `roots` the roots that a
//! transaction sees, `tree` lookups, and `cursor` scans. `committed` has the pages that a write
//! transaction is based on; `precheck` checks them before LMDB's cursor reads them.
//!
//! What is checked, and where:
//! - each page on the path: that the file has it, its number, its kind, and the bounds of its
//!   entries;
//! - each entry that is compared or returned: that it is within its page, and a long value within
//!   the file;
//! - a key that is not found: that keys around its place in the leaf are in order, that the keys of
//!   the leaf are within those of its branches, and the sibling leaf if the place is at the edge. A
//!   wrong key in a branch leads to a leaf that has no keys on both sides of the one looked up;
//! - a leaf or branch that a scan has read to its end: that its entries fill it without gaps or
//!   overlaps, and that its keys are on their side of the branch key between two leaves.
//!
//! LMDB keeps no checksums, so wrong bytes within a value are not found, nor within a key that a
//! search does not compare; `verify` compares all keys. A write transaction reads and changes a
//! table that it has changed through LMDB, since the new pages are LMDB's own memory. Before LMDB
//! follows or copies committed pages, all entries of the leaf are checked, and the entries of the
//! branches that LMDB compares; all entries of a branch before LMDB may add or remove one.

mod bounds;
mod check;
mod committed;
mod cursor;
mod lookup;
mod page;
mod precheck;
mod roots;
mod tree;

pub(crate) use check::Access;
pub(crate) use committed::{Committed, TableId};
pub(crate) use cursor::Cursor;
pub use page::Row;
pub(crate) use precheck::Precheck;
pub(crate) use roots::Roots;
pub(crate) use tree::{Source, Tree};
