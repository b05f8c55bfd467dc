//! What functions of the store take and answer.

use crate::error::{Failure, Result};
use crate::memory::Caller;
use std::ops::Bound;
use store_engine::{Durability, Kind, RawRow, Scan};

/// An open store.
pub type nuthatch_store = u64;
/// A table of an open store.
pub type nuthatch_store_table = u64;
/// One state of a store.
pub type nuthatch_store_snapshot = u64;
/// A scan that is read batch by batch.
pub type nuthatch_store_scan = u64;
/// A queue of writes, and the thread that writes them.
pub type nuthatch_store_writer = u64;
/// A watch of changes.
pub type nuthatch_store_watch = u64;

/// Commits wait for the disk: nothing that was committed is lost.
pub const NUTHATCH_STORE_SYNC: u32 = 0;
/// A machine that loses power may lose the last commit, none before it.
pub const NUTHATCH_STORE_GROUP: u32 = 1;
/// A machine that loses power may lose commits, and may damage the store.
pub const NUTHATCH_STORE_NO_SYNC: u32 = 2;

/// Tables that keep values as they are.
pub const NUTHATCH_STORE_PLAIN: u32 = 0;
/// Tables that keep a version with each value, and the time it expires.
pub const NUTHATCH_STORE_STAMPED: u32 = 1;
/// A table of any kind: plain if it has to be made.
pub const NUTHATCH_STORE_ANY_KIND: u32 = 2;

/// No bound: the range goes on to the end.
pub const NUTHATCH_STORE_UNBOUNDED: u32 = 0;
/// The key itself belongs to the range.
pub const NUTHATCH_STORE_INCLUDED: u32 = 1;
/// The key itself does not belong to the range.
pub const NUTHATCH_STORE_EXCLUDED: u32 = 2;
/// As a start: keys that begin with it. An end holds besides.
pub const NUTHATCH_STORE_PREFIX: u32 = 3;

/// A scan from the greatest key on.
pub const NUTHATCH_STORE_REVERSE: u32 = 1;
/// A scan of keys with empty values.
pub const NUTHATCH_STORE_KEYS_ONLY: u32 = 2;

/// Which keys. All zero is all keys.
#[repr(C)]
pub struct nuthatch_store_range {
    /// The lower bound; not read when there is none.
    pub start: *const u8,
    /// Its length in bytes.
    pub start_len: usize,
    /// The upper bound; not read when there is none.
    pub end: *const u8,
    /// Its length in bytes.
    pub end_len: usize,
    /// What `start` is: `NUTHATCH_STORE_UNBOUNDED`, `_INCLUDED`, `_EXCLUDED` or `_PREFIX`.
    pub start_bound: u32,
    /// What `end` is: `NUTHATCH_STORE_UNBOUNDED`, `_INCLUDED` or `_EXCLUDED`.
    pub end_bound: u32,
}

/// What a scan reads. All zero is all rows, forward.
#[repr(C)]
pub struct nuthatch_store_scan_options {
    /// The keys.
    pub range: nuthatch_store_range,
    /// So many rows at most, where `has_limit` is not 0.
    pub limit: u64,
    /// After how many bytes of keys and values a batch ends; 0 for 4 MiB.
    pub batch_bytes: u64,
    /// How many rows a batch has, at most; 0 for 4096.
    pub batch_rows: u32,
    /// `NUTHATCH_STORE_REVERSE` and `NUTHATCH_STORE_KEYS_ONLY`, added up.
    pub flags: u32,
    /// Whether there is a limit.
    pub has_limit: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// A row, where it lies.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_store_row {
    /// The key.
    pub key: *const u8,
    /// The value; anything where it has no bytes.
    pub value: *const u8,
    /// Bytes of the key.
    pub key_len: u32,
    /// Bytes of the value.
    pub value_len: u32,
}

// A batch of rows is handed out as it lies in the store's own memory.
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

/// What there is of a key.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_store_entry {
    /// The value; null where the key is missing, or did not fit.
    pub value: *const u8,
    /// Bytes of the value, also where it did not fit.
    pub value_len: u64,
    /// The number of the change that wrote it; 0 in a plain table.
    pub version: u64,
    /// When it expires, in milliseconds since the beginning of 1970; 0 for never.
    pub expires_at_ms: u64,
    /// Whether the key is there.
    pub found: u32,
    /// Whether the table is stamped, and so `version` one.
    pub is_stamped: u32,
}

/// A key to be looked up.
#[repr(C)]
pub struct nuthatch_store_key {
    /// Its bytes.
    pub key: *const u8,
    /// How many.
    pub key_len: usize,
}

/// The scan that C asks for.
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

/// The range that C asks for.
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

/// The kind that C asks for; `None` for any.
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
