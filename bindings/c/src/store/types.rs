//! Types of the parameters of the store's functions.

use crate::error::{Failure, Result};
use crate::memory::Caller;
use std::ops::Bound;
use store_engine::{Durability, Kind, RawRow, Scan};

/// A handle of an open store.
pub type nuthatch_store = u64;
/// A handle of a table of an open store.
pub type nuthatch_store_table = u64;
/// A handle of a read transaction: one state of a store.
pub type nuthatch_store_read_transaction = u64;
/// A handle of a scan, which is read in batches of rows.
pub type nuthatch_store_scan = u64;
/// A handle of a batch writer: a queue of batches and the thread that commits them.
pub type nuthatch_store_writer = u64;
/// A handle of a watch of changes.
pub type nuthatch_store_watch = u64;

/// A commit waits for the disk. No committed write is lost.
pub const NUTHATCH_STORE_SYNC: u32 = 0;
/// If the machine loses power, the last commit may be lost, even if it was acknowledged. Earlier
/// commits are not lost.
pub const NUTHATCH_STORE_GROUP: u32 = 1;
/// If the machine loses power, commits may be lost, and the store may be damaged.
pub const NUTHATCH_STORE_NO_SYNC: u32 = 2;

/// A table whose rows are a key and a value.
pub const NUTHATCH_STORE_PLAIN: u32 = 0;
/// A table whose rows also have a version and a time of expiry.
pub const NUTHATCH_STORE_STAMPED: u32 = 1;
/// A table of any kind. It is created as a plain table if it is missing.
pub const NUTHATCH_STORE_ANY_KIND: u32 = 2;

/// No bound.
pub const NUTHATCH_STORE_UNBOUNDED: u32 = 0;
/// The range includes the key of the bound.
pub const NUTHATCH_STORE_INCLUDED: u32 = 1;
/// The range excludes the key of the bound.
pub const NUTHATCH_STORE_EXCLUDED: u32 = 2;
/// For `start_bound` only: the range has the keys that begin with `start`. The upper bound applies,
/// too.
pub const NUTHATCH_STORE_PREFIX: u32 = 3;

/// Scan flag: in descending order of keys.
pub const NUTHATCH_STORE_REVERSE: u32 = 1;
/// Scan flag: keys only; values are empty.
pub const NUTHATCH_STORE_KEYS_ONLY: u32 = 2;

/// A range of keys. All fields zero: all keys.
#[repr(C)]
pub struct nuthatch_store_range {
    /// The lower bound. Ignored if unbounded.
    pub start: *const u8,
    /// Length of `start` in bytes.
    pub start_len: usize,
    /// The upper bound. Ignored if unbounded.
    pub end: *const u8,
    /// Length of `end` in bytes.
    pub end_len: usize,
    /// Kind of the lower bound: `NUTHATCH_STORE_UNBOUNDED`, `_INCLUDED`, `_EXCLUDED` or `_PREFIX`.
    pub start_bound: u32,
    /// Kind of the upper bound: `NUTHATCH_STORE_UNBOUNDED`, `_INCLUDED` or `_EXCLUDED`.
    pub end_bound: u32,
}

/// Options of a scan. All fields zero: all rows, in ascending order of keys.
#[repr(C)]
pub struct nuthatch_store_scan_options {
    /// The range of keys.
    pub range: nuthatch_store_range,
    /// Maximum number of rows, if `has_limit` is not 0.
    pub limit: u64,
    /// A batch ends when its keys and values have this many bytes; 0: 4 MiB. It has at least one
    /// row.
    pub batch_bytes: u64,
    /// Maximum number of rows in a batch; 0: 4096.
    pub batch_rows: u32,
    /// The sum of `NUTHATCH_STORE_REVERSE` and `NUTHATCH_STORE_KEYS_ONLY`, or one of them, or 0.
    pub flags: u32,
    /// 1 if `limit` applies, otherwise 0.
    pub has_limit: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// A row. Its pointers refer to memory of the store, or of the caller in `nuthatch_store_append`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_store_row {
    /// The key.
    pub key: *const u8,
    /// The value. Ignore the pointer if `value_len` is 0.
    pub value: *const u8,
    /// Length of the key in bytes.
    pub key_len: u32,
    /// Length of the value in bytes.
    pub value_len: u32,
}

// The store's rows are passed to C without a conversion.
const _: () = {
    assert!(size_of::<nuthatch_store_row>() == size_of::<RawRow>());
    assert!(align_of::<nuthatch_store_row>() == align_of::<RawRow>());
    assert!(std::mem::offset_of!(nuthatch_store_row, key) == std::mem::offset_of!(RawRow, key));
    assert!(std::mem::offset_of!(nuthatch_store_row, value) == std::mem::offset_of!(RawRow, value));
    assert!(
        std::mem::offset_of!(nuthatch_store_row, key_len) == std::mem::offset_of!(RawRow, key_len)
    );
    assert!(
        std::mem::offset_of!(nuthatch_store_row, value_len)
            == std::mem::offset_of!(RawRow, value_len)
    );
};

/// The result of a lookup.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_store_entry {
    /// The value; null if the key is missing or the value does not fit.
    pub value: *const u8,
    /// Length of the value in bytes, even if it does not fit.
    pub value_len: u64,
    /// The number of the change that wrote the value; 0 in a plain table.
    pub version: u64,
    /// Time of expiry in milliseconds since 1970; 0: never.
    pub expires_at_ms: u64,
    /// 1 if the key exists, otherwise 0.
    pub found: u32,
    /// 1 if the table is stamped, so that `version` is valid; otherwise 0.
    pub is_stamped: u32,
}

/// A key to look up.
#[repr(C)]
pub struct nuthatch_store_key {
    /// The key.
    pub key: *const u8,
    /// Length of the key in bytes.
    pub key_len: usize,
}

/// Returns the scan of these options.
pub(crate) fn scan_of(
    caller: &Caller<'_>,
    options: *const nuthatch_store_scan_options,
) -> Result<Scan> {
    let Some(options) = caller.maybe("options", options)? else { return Ok(Scan::all()) };
    let mut scan = Scan::new(range_of(caller, &raw const options.range)?);
    if options.flags & !(NUTHATCH_STORE_REVERSE | NUTHATCH_STORE_KEYS_ONLY) != 0 {
        return Err(Failure::argument("flags", "flags of a scan", options.flags));
    }
    if options.flags & NUTHATCH_STORE_REVERSE != 0 {
        scan = scan.reverse();
    }
    if options.flags & NUTHATCH_STORE_KEYS_ONLY != 0 {
        scan = scan.keys_only();
    }
    if options.has_limit != 0 {
        scan = scan.limit(options.limit);
    }
    if options.batch_rows != 0 {
        scan = scan.batch_rows(options.batch_rows as usize);
    }
    if options.batch_bytes != 0 {
        scan = scan.batch_bytes(usize::try_from(options.batch_bytes).unwrap_or(usize::MAX));
    }
    Ok(scan)
}

/// Returns the range of this struct.
pub(crate) fn range_of(
    caller: &Caller<'_>,
    range: *const nuthatch_store_range,
) -> Result<store_engine::Range> {
    use store_engine::Range;
    let Some(range) = caller.maybe("range", range)? else { return Ok(Range::all()) };
    let wrong = |name, found| Err(Failure::argument(name, "a kind of bound", found));
    let start = || caller.bytes("start", range.start, range.start_len).map(<[u8]>::to_vec);
    let end = || caller.bytes("end", range.end, range.end_len).map(<[u8]>::to_vec);
    let end = match range.end_bound {
        NUTHATCH_STORE_UNBOUNDED => Bound::Unbounded,
        NUTHATCH_STORE_INCLUDED => Bound::Included(end()?),
        NUTHATCH_STORE_EXCLUDED => Bound::Excluded(end()?),
        found => return wrong("end_bound", found),
    };
    Ok(match range.start_bound {
        NUTHATCH_STORE_UNBOUNDED => Range::new(Bound::Unbounded, end),
        NUTHATCH_STORE_INCLUDED => Range::new(Bound::Included(start()?), end),
        NUTHATCH_STORE_EXCLUDED => Range::new(Bound::Excluded(start()?), end),
        NUTHATCH_STORE_PREFIX => Range::prefix(start()?).and(&Range::new(Bound::Unbounded, end)),
        found => return wrong("start_bound", found),
    })
}

pub(crate) fn durability_of(number: u32) -> Result<Durability> {
    match number {
        NUTHATCH_STORE_SYNC => Ok(Durability::Sync),
        NUTHATCH_STORE_GROUP => Ok(Durability::Group),
        NUTHATCH_STORE_NO_SYNC => Ok(Durability::None),
        found => Err(Failure::argument("durability", "a durability", found)),
    }
}

/// Returns the kind of table with this number; `None` for any kind.
pub(crate) fn kind_of(number: u32) -> Result<Option<Kind>> {
    match number {
        NUTHATCH_STORE_PLAIN => Ok(Some(Kind::Plain)),
        NUTHATCH_STORE_STAMPED => Ok(Some(Kind::Stamped)),
        NUTHATCH_STORE_ANY_KIND => Ok(None),
        found => Err(Failure::argument("kind", "a kind of table", found)),
    }
}

pub(crate) fn kind_number(kind: Kind) -> u32 {
    match kind {
        Kind::Plain => NUTHATCH_STORE_PLAIN,
        Kind::Stamped => NUTHATCH_STORE_STAMPED,
    }
}
