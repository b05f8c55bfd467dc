//! Errors in C: a code, and a message in memory of the caller.

use snapshot_engine::Error as SnapshotError;
use std::ffi::{CStr, c_char};

/// Bytes of a message, the zero at its end among them.
const MESSAGE_LEN: usize = size_of::<nuthatch_error>() - 16;

/// Error code `io`. A system call failed, such as opening a file that does not exist.
pub const NUTHATCH_ERROR_IO: i32 = 1;
/// Error code `corrupt`. The bytes of a file contradict its format.
pub const NUTHATCH_ERROR_CORRUPT: i32 = 3;
/// Error code `closed`. The handle was closed, or the snapshot was stopped.
pub const NUTHATCH_ERROR_CLOSED: i32 = 14;
/// Error code `not-a-snapshot`. The file does not begin with the magic bytes of a snapshot.
pub const NUTHATCH_ERROR_NOT_A_SNAPSHOT: i32 = 31;
/// Error code `unsupported`. A newer version wrote the file, or the bytes of a manifest were opened
/// without its path.
pub const NUTHATCH_ERROR_UNSUPPORTED: i32 = 32;
/// Error code `wrong-type`. The value has another type than the requested one.
pub const NUTHATCH_ERROR_WRONG_TYPE: i32 = 33;
/// Error code `unreadable`. The file was truncated, or its device failed, while it was mapped.
pub const NUTHATCH_ERROR_UNREADABLE: i32 = 34;
/// Error code `not-durable`. The file was published, but a power failure may restore the old one.
pub const NUTHATCH_ERROR_NOT_DURABLE: i32 = 35;
/// Error code `duplicate`. Two rows have the same key.
pub const NUTHATCH_ERROR_DUPLICATE: i32 = 36;
/// Error code `limit`. Input of a writer exceeds a limit of the format.
pub const NUTHATCH_ERROR_LIMIT: i32 = 37;
/// Error code `argument`. A parameter is invalid, such as a null pointer.
pub const NUTHATCH_ERROR_ARGUMENT: i32 = 100;
/// Error code `handle`. A number is no handle, or the handle of another kind of object.
pub const NUTHATCH_ERROR_HANDLE: i32 = 101;
/// Error code `panic`. A bug of the library.
pub const NUTHATCH_ERROR_PANIC: i32 = 102;

/// Error code `compressed`. The value is compressed, and the caller passed no scratch buffer.
pub const NUTHATCH_ERROR_COMPRESSED: i32 = 103;

/// Why a call failed. Written only if the call fails.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nuthatch_error {
    /// The error code that the call returned.
    pub code: i32,
    /// The error number of the operating system (`errno`), or 0.
    pub system: i32,
    /// For `not-a-snapshot`, `unsupported` and `corrupt` of a snapshot: the offset in the file, in
    /// bytes. For `condition-unmet`: the index of the condition in the batch. For `duplicate`: the
    /// number of the second row with the key. For `nuthatch_snapshot_writer_insert_rows`: the index
    /// of the row in that call. Indexes and numbers begin with 0. Otherwise 0.
    pub position: u64,
    /// A readable message in UTF-8, terminated by a zero byte. A longer message is truncated.
    pub message: [u8; 488],
}

/// A failure that is reported to the caller.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the store, as the caller receives it.
    Store(Box<nuthatch_error>),
    Snapshot(SnapshotError),
    /// Codes of this crate.
    Library(i32, String),
    /// The failure of one of several rows, with the index of the row.
    InRow(u64, Box<Failure>),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

/// All codes by number, in the order of `testdata/store/errors.csv`, then those that only
/// `testdata/errors.csv` has, then those of this crate.
const NAMES: [(i32, &CStr); 35] = [
    (NUTHATCH_ERROR_IO, c"io"),
    (2, c"not-a-store"),
    (NUTHATCH_ERROR_CORRUPT, c"corrupt"),
    (4, c"already-open"),
    (5, c"in-use"),
    (6, c"other-locks"),
    (7, c"full"),
    (8, c"readers-full"),
    (9, c"transaction-full"),
    (10, c"options"),
    (11, c"length"),
    (12, c"table"),
    (13, c"read-only"),
    (NUTHATCH_ERROR_CLOSED, c"closed"),
    (15, c"broken"),
    (16, c"unordered"),
    (17, c"fell-behind"),
    (18, c"ahead"),
    (19, c"no-changes-kept"),
    (20, c"condition-unmet"),
    (21, c"group"),
    (22, c"queue-full"),
    (23, c"decode"),
    (24, c"lmdb"),
    (NUTHATCH_ERROR_NOT_A_SNAPSHOT, c"not-a-snapshot"),
    (NUTHATCH_ERROR_UNSUPPORTED, c"unsupported"),
    (NUTHATCH_ERROR_WRONG_TYPE, c"wrong-type"),
    (NUTHATCH_ERROR_UNREADABLE, c"unreadable"),
    (NUTHATCH_ERROR_NOT_DURABLE, c"not-durable"),
    (NUTHATCH_ERROR_DUPLICATE, c"duplicate"),
    (NUTHATCH_ERROR_LIMIT, c"limit"),
    (NUTHATCH_ERROR_ARGUMENT, c"argument"),
    (NUTHATCH_ERROR_HANDLE, c"handle"),
    (NUTHATCH_ERROR_PANIC, c"panic"),
    (NUTHATCH_ERROR_COMPRESSED, c"compressed"),
];

impl Failure {
    pub(crate) fn argument(name: &str, expected: &str, found: impl std::fmt::Display) -> Self {
        Self::Library(
            NUTHATCH_ERROR_ARGUMENT,
            format!("{name}: expected {expected}, found {found}"),
        )
    }

    /// Returns the failure of a closed object, with a message.
    pub(crate) fn closed(text: &str) -> Self {
        Self::Library(NUTHATCH_ERROR_CLOSED, text.to_owned())
    }

    pub(crate) fn code(&self) -> i32 {
        match self {
            Self::Library(code, _) => *code,
            Self::Store(error) => error.code,
            Self::Snapshot(error) => number_of(error.code()).unwrap_or(NUTHATCH_ERROR_PANIC),
            Self::InRow(_, failure) => failure.code(),
        }
    }

    /// Converts the failure into the struct of the header.
    pub(crate) fn to_c(&self) -> nuthatch_error {
        match self {
            Self::Library(code, text) => error_with(*code, 0, 0, text),
            Self::Store(error) => **error,
            Self::Snapshot(error) => {
                error_with(self.code(), system_of(error), position_of(error), &error.to_string())
            }
            Self::InRow(row, failure) => {
                let found = failure.to_c();
                let text = CStr::from_bytes_until_nul(&found.message).unwrap_or_default();
                let text = format!("row {row}: {}", text.to_string_lossy());
                error_with(found.code, found.system, *row, &text)
            }
        }
    }
}

/// Returns the error number of the operating system, or 0.
fn system_of(error: &SnapshotError) -> i32 {
    match error {
        SnapshotError::Io(io) | SnapshotError::NotDurable(io) => {
            io.source.raw_os_error().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Returns the field `position` of an error.
fn position_of(error: &SnapshotError) -> u64 {
    match error {
        SnapshotError::NotASnapshot(damage)
        | SnapshotError::Unsupported(damage)
        | SnapshotError::Corrupt(damage) => damage.offset,
        SnapshotError::Duplicate(duplicate) => duplicate.second,
        _ => 0,
    }
}

/// Returns the struct of the header.
pub(crate) fn error_with(code: i32, system: i32, position: u64, text: &str) -> nuthatch_error {
    nuthatch_error { code, system, position, message: truncated(text) }
}

/// Returns a message in a buffer of the header.
pub(crate) fn truncated(text: &str) -> [u8; MESSAGE_LEN] {
    let mut message = [0; MESSAGE_LEN];
    // Cut where a character begins; the last byte stays zero.
    let mut len = text.len().min(MESSAGE_LEN - 1);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    message[..len].copy_from_slice(&text.as_bytes()[..len]);
    message
}

/// Returns the number of the code with a name, if there is one.
pub(crate) fn number_of(name: &str) -> Option<i32> {
    let found = NAMES.iter().find(|(_, known)| known.to_bytes() == name.as_bytes());
    found.map(|(number, _)| *number)
}

/// Returns the name of an error code, such as `full`: a name in `testdata/store/errors.csv` or
/// `testdata/errors.csv`, or `argument`, `handle`, `panic` or
/// `compressed`. Returns `ok` for 0 and `unknown` for
/// any other number. The string is static and terminated by a zero byte.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_code_name(code: i32) -> *const c_char {
    let found = NAMES.iter().find(|(number, _)| *number == code).map(|(_, name)| *name);
    let other = if code == 0 { c"ok" } else { c"unknown" };
    found.unwrap_or(other).as_ptr()
}

/// Returns the version of this library, such as `0.1.0`. The string is static and terminated by a
/// zero byte.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = include_str!("../../../testdata/store/errors.csv");
    const SNAPSHOT_TABLE: &str = include_str!("../../../testdata/errors.csv");

    #[test]
    fn codes_are_those_of_the_table_in_its_order() {
        let names: Vec<_> =
            TABLE.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        let here: Vec<_> = NAMES[..names.len()].iter().map(|(_, name)| name.to_str()).collect();
        assert_eq!(here, names.iter().map(|name| Ok(*name)).collect::<Vec<_>>());
        assert!(NAMES[..names.len()].iter().zip(1..).all(|((number, _), nth)| *number == nth));
    }

    #[test]
    fn each_code_of_snapshots_has_one_number() {
        for line in SNAPSHOT_TABLE.lines().skip(1) {
            let name = line.split(',').next().expect("a code");
            let number = number_of(name).unwrap_or_else(|| panic!("no number for {name}"));
            assert_eq!(NAMES.iter().filter(|(other, _)| *other == number).count(), 1, "{name}");
        }
    }

    /// Programs name the codes of snapshots by constants.
    #[test]
    fn the_header_has_a_constant_for_each_code_of_snapshots() {
        let header = include_str!("../include/nuthatch.h");
        for line in SNAPSHOT_TABLE.lines().skip(1) {
            let name = line.split(',').next().expect("a code");
            let constant = name.to_uppercase().replace('-', "_");
            let number = number_of(name).expect("a number");
            let define = format!("#define NUTHATCH_ERROR_{constant} {number}");
            assert!(header.lines().any(|line| line == define), "{define}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let error = Failure::Library(NUTHATCH_ERROR_PANIC, "é".repeat(400)).to_c();
        let end = error.message.iter().position(|byte| *byte == 0).expect("an end");
        assert_eq!(std::str::from_utf8(&error.message[..end]), Ok(&*"é".repeat(243)));
        assert_eq!(error.code, NUTHATCH_ERROR_PANIC);
    }
}
