//! Writing of a delta.

use super::header::Header;
use super::read::MAX_VALUE_BYTES;
use crate::error::{Error, Result};
use nuthatch_snapshot::{Difference, Entry, Scratch, Snapshot, StoredValue};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use zstd::stream::write::Encoder;

/// The compression level of the rows.
const LEVEL: i32 = 6;
/// Number of rows between two checks of the length.
const ROWS_PER_CHECK: u32 = 1_024;

/// Writes the rows by which a new snapshot differs from an old one to a file, and the metadata of
/// the new one. Returns its length. Returns `None` if it would be longer than this, or have a value
/// that is too long; then the file has a part of it.
pub(crate) fn write(
    (old, new): (&Snapshot, &Snapshot),
    header: &Header,
    to: &Path,
    max_bytes: u64,
) -> Result<Option<u64>> {
    let failed = |e| Error::io(to, "write", e);
    let mut file = File::create(to).map_err(failed)?;
    file.write_all(&header.encode()).map_err(failed)?;
    let mut out = Encoder::new(file, LEVEL).map_err(failed)?;
    write_metadata(new, &mut out, failed)?;
    let (mut scratch, mut rows) = (Scratch::new(), 0_u32);
    for difference in old.differences(new) {
        let written = match difference? {
            Difference::Removed(Entry { key, .. }) => write_key(0, key, &mut out),
            Difference::Changed { old: Entry { key, .. }, new: value }
            | Difference::Added(Entry { key, value }) => {
                let bytes = value.uncompressed_bytes(&mut scratch)?;
                if bytes.len() as u64 > MAX_VALUE_BYTES {
                    return Ok(None);
                }
                write_row(key, &value, bytes, &mut out)
            }
        };
        written.map_err(failed)?;
        rows = rows.wrapping_add(1);
        let is_due = rows.is_multiple_of(ROWS_PER_CHECK);
        if is_due && out.get_ref().metadata().map_err(failed)?.len() > max_bytes {
            return Ok(None);
        }
    }
    new.check_readable()?;
    let file = out.finish().map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    Ok((len <= max_bytes).then_some(len))
}

fn write_metadata(
    new: &Snapshot,
    out: &mut impl Write,
    failed: impl Fn(io::Error) -> Error + Copy,
) -> Result<()> {
    let metadata = new.metadata()?;
    let pairs: Vec<_> = metadata.iter().collect();
    out.write_all(&(pairs.len() as u32).to_le_bytes()).map_err(failed)?;
    for (name, value) in pairs {
        let head = || [&[name.len() as u8][..], &(value.len() as u32).to_le_bytes()].concat();
        for bytes in [&head(), name.as_bytes(), value] {
            out.write_all(bytes).map_err(failed)?;
        }
    }
    Ok(())
}

fn write_key(code: u8, key: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[code])?;
    out.write_all(&(key.len() as u16).to_le_bytes())?;
    out.write_all(key)
}

fn write_row(
    key: &[u8],
    value: &StoredValue<'_>,
    bytes: &[u8],
    out: &mut impl Write,
) -> io::Result<()> {
    write_key(value.value_type().code(), key, out)?;
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)
}
