//! Reading of a delta.

use super::header::{Header, LEN};
use crate::error::{Error, Result};
use nuthatch_snapshot::{Scratch, Value, ValueType};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use zstd::stream::read::Decoder;

/// Binary logarithm of the maximum memory of the decompression in bytes.
const MAX_WINDOW_LOG: u32 = 27;
/// Maximum length of the metadata in bytes, some more than a snapshot can have.
const MAX_METADATA_BYTES: u64 = 2 << 20;
/// Maximum length of a value in bytes. Longer ones would take much memory.
pub(super) const MAX_VALUE_BYTES: u64 = 16 << 20;

/// A delta that is read.
pub(super) struct DeltaReader {
    path: PathBuf,
    pub(super) header: Header,
    /// The metadata of the new file.
    pub(super) metadata: Vec<(String, Vec<u8>)>,
    rows: BufReader<Decoder<'static, BufReader<File>>>,
    key: Vec<u8>,
    bytes: Vec<u8>,
    scratch: Scratch,
}

/// A row of a delta.
pub(super) enum Row<'a> {
    /// The new file does not have the key.
    Removed(&'a [u8]),
    /// The new file has this value, and the old one another or none. The number is the length of
    /// both.
    Put(&'a [u8], Value<'a>, u64),
}

impl DeltaReader {
    /// Opens a delta and reads its header and the metadata.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |e| failure(path, e);
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let mut header = [0; LEN];
        file.read_exact(&mut header).map_err(failed)?;
        let invalid = |(expected, found)| Error::Contents {
            place: path.display().to_string(),
            expected,
            found,
        };
        let header = Header::decode(&header).map_err(invalid)?;
        let mut decoder = Decoder::with_buffer(file).map_err(failed)?;
        decoder.window_log_max(MAX_WINDOW_LOG).map_err(failed)?;
        let mut rows = BufReader::new(decoder);
        let metadata = read_metadata(&mut rows).map_err(failed)?;
        let (key, bytes, scratch) = (Vec::new(), Vec::new(), Scratch::new());
        Ok(Self { path: path.to_owned(), header, metadata, rows, key, bytes, scratch })
    }

    /// Reads the next row. Returns `None` after the last one.
    pub(super) fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        let Self { path, rows, key, bytes, scratch, .. } = self;
        let failed = |e| failure(path, e);
        let mut code = [0];
        if rows.read(&mut code).map_err(failed)? == 0 {
            return Ok(None);
        }
        let len = u16::from_le_bytes(read_array(rows).map_err(failed)?);
        read_bytes(rows, u64::from(len), key).map_err(failed)?;
        if code == [0] {
            return Ok(Some(Row::Removed(key)));
        }
        let len = u64::from_le_bytes(read_array(rows).map_err(failed)?);
        if len > MAX_VALUE_BYTES {
            let problem = format!("a value of {len} bytes");
            return Err(failed(io::Error::new(ErrorKind::InvalidData, problem)));
        }
        read_bytes(rows, len, bytes).map_err(failed)?;
        let value_type = ValueType::from_code(code[0]);
        match value_type.and_then(|value_type| scratch.copy(value_type, bytes)) {
            Some(value) => {
                let len = key.len() as u64 + bytes.len() as u64;
                Ok(Some(Row::Put(key, value, len)))
            }
            None => Err(Error::Contents {
                place: path.display().to_string(),
                expected: "a value of a type".to_owned(),
                found: format!("type {} and {} other bytes", code[0], bytes.len()),
            }),
        }
    }
}

fn read_metadata(from: &mut impl Read) -> io::Result<Vec<(String, Vec<u8>)>> {
    let count = u32::from_le_bytes(read_array(from)?);
    let from = &mut from.take(MAX_METADATA_BYTES);
    let mut pairs = Vec::new();
    for _ in 0..count {
        let [name_len] = read_array(from)?;
        let value_len = u32::from_le_bytes(read_array(from)?);
        let (mut name, mut value) = (Vec::new(), Vec::new());
        read_bytes(from, u64::from(name_len), &mut name)?;
        read_bytes(from, u64::from(value_len), &mut value)?;
        let name =
            String::from_utf8(name).map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        pairs.push((name, value));
    }
    Ok(pairs)
}

fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Replaces the contents of a buffer by the next bytes. The buffer grows with what is read, not by
/// what a length claims.
fn read_bytes(from: &mut impl Read, len: u64, to: &mut Vec<u8>) -> io::Result<()> {
    to.clear();
    let read = from.by_ref().take(len).read_to_end(to)?;
    if read as u64 == len { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Returns the error of a delta that cannot be read. Decompression reports damage as an error of
/// the system without a number.
fn failure(path: &Path, error: io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::io(path, "read", error);
    }
    Error::Contents {
        place: path.display().to_string(),
        expected: "the rows of a delta".to_owned(),
        found: error.to_string(),
    }
}
