//! Deltas: the rows by which a file of a snapshot differs from an earlier one. With the earlier
//! file, a machine builds the same bytes again. `docs/formats/delta.md` specifies the file.

mod header;
mod read;
mod rebuild;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use header::Header;
pub(crate) use rebuild::{Limits, Rebuild};
pub(crate) use write::write;

/// Minimum length of a file for which a delta is made. A shorter one is fetched at once.
pub(crate) const MIN_FILE_BYTES: u64 = 64 << 10;

/// Returns the maximum length of the deltas that lead to a file: with more, fetching the file is
/// the better choice.
pub(crate) fn max_bytes(file_bytes: u64) -> u64 {
    file_bytes / 2
}
