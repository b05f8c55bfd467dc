//! Types of the parameters of the snapshot's functions.

/// A handle of a snapshot writer.
pub type nuthatch_snapshot_writer = u64;
/// A handle of a watch: it polls a path or a name for a new file, to which readers then switch.
pub type nuthatch_snapshot_watch = u64;

/// Type of the result of a lookup if the key is missing.
pub const NUTHATCH_SNAPSHOT_ABSENT: u32 = 0;
/// Type of a value: bytes.
pub const NUTHATCH_SNAPSHOT_BYTES: u32 = 1;
/// Type of a value: text in UTF-8.
pub const NUTHATCH_SNAPSHOT_STRING: u32 = 2;
/// Type of a value: 0 or 1.
pub const NUTHATCH_SNAPSHOT_BOOL: u32 = 3;
/// Type of a value: a signed integer of 64 bits.
pub const NUTHATCH_SNAPSHOT_I64: u32 = 4;
/// Type of a value: a float of 64 bits.
pub const NUTHATCH_SNAPSHOT_F64: u32 = 5;
/// Type of a value: a list with at least one signed integer of 64 bits.
pub const NUTHATCH_SNAPSHOT_I64_LIST: u32 = 6;
/// Type of a value: a list with at least one float of 64 bits.
pub const NUTHATCH_SNAPSHOT_F64_LIST: u32 = 7;
/// Type of a value: a list with at least one float of 32 bits.
pub const NUTHATCH_SNAPSHOT_F32_LIST: u32 = 8;
/// Type of a value: a list with at least one string in UTF-8.
pub const NUTHATCH_SNAPSHOT_STRING_LIST: u32 = 9;
/// Type of a value: a list without elements. Typed lookups of any list type return it as a list of
/// that type with the length 0.
pub const NUTHATCH_SNAPSHOT_EMPTY_LIST: u32 = 10;
