//! Writers of snapshots.

use super::decode::Decoder;
use super::types::nuthatch_snapshot_writer;
use crate::error::{Failure, Result, nuthatch_error};
use crate::handles::{self, HandleObject};
use crate::memory::{Caller, export_body, nuthatch_snapshot_bytes};
use snapshot_engine::{Compression, OnDuplicate, Summary, Value, Writer, WriterOptions};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// If two rows have the same key, `nuthatch_snapshot_writer_finish` fails with `duplicate`.
pub const NUTHATCH_SNAPSHOT_DUPLICATE_ERROR: u32 = 0;
/// The row that was added first is kept.
pub const NUTHATCH_SNAPSHOT_DUPLICATE_FIRST: u32 = 1;
/// The row that was added last is kept.
pub const NUTHATCH_SNAPSHOT_DUPLICATE_LAST: u32 = 2;

/// Values are not compressed: all are read in place.
pub const NUTHATCH_SNAPSHOT_COMPRESSION_NONE: u32 = 0;
/// Each value is compressed by itself with zstd, with a dictionary that is trained on the values.
/// Stored uncompressed are booleans, single numbers, values below 32 bytes or above 16 MiB, and
/// values that would shrink by less than an eighth.
pub const NUTHATCH_SNAPSHOT_COMPRESSION_ZSTD: u32 = 1;

/// The level of zstd for `compression_level` 0.
const DEFAULT_ZSTD_LEVEL: i32 = 3;

/// Length of the head of a row of `nuthatch_snapshot_writer_insert_rows`, in bytes.
const ROW_HEAD_LEN: usize = 16;

/// Options of a writer. A null pointer, and a struct of zeros, are the default options.
#[repr(C)]
pub struct nuthatch_snapshot_writer_options {
    /// How rows with the same key are handled: `NUTHATCH_SNAPSHOT_DUPLICATE_ERROR`, `_FIRST` or
    /// `_LAST`.
    pub on_duplicate: u32,
    /// How values are compressed: `NUTHATCH_SNAPSHOT_COMPRESSION_NONE` or `_ZSTD`.
    pub compression: u32,
    /// Level of zstd from 1 to 22; 0: 3. Without effect if `compression` is `_NONE`.
    pub compression_level: u32,
    /// Maximum number of threads; 0: all cores. Each thread needs 4 MiB of the memory budget.
    pub threads: u32,
    /// Memory budget in bytes; 0: 1 GiB. A budget below 16 MiB counts as 16 MiB. Rows beyond it are
    /// written to temporary files in the folder of the snapshot.
    pub memory_bytes: u64,
    /// Seed of the key hash.
    pub seed: u64,
    /// Number of shards, at most 65,536: the snapshot is a manifest and that many files beside it.
    /// Each shard needs 16 KiB of the memory budget. 0: the snapshot is one file.
    pub shards: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// The result of a build.
#[repr(C)]
pub struct nuthatch_snapshot_summary {
    /// Number of entries.
    pub entries: u64,
    /// Number of rows that were added, duplicates included.
    pub rows: u64,
    /// Length of the file in bytes; for a set, of all shards without the manifest.
    pub file_bytes: u64,
    /// Sum of the lengths of all keys in bytes.
    pub key_bytes: u64,
    /// Sum of the lengths of all values in bytes, uncompressed.
    pub value_bytes: u64,
    /// Sum of the lengths of all stored values in bytes. A shared value counts once.
    pub stored_value_bytes: u64,
}

/// The object of a writer's handle.
pub(crate) struct OpenWriter {
    building: Mutex<Building>,
    /// The process that created the writer.
    process: u32,
}

impl HandleObject for OpenWriter {
    const KIND: &str = "a snapshot writer";
}

struct Building {
    /// `None` after the writer was finished or abandoned.
    writer: Option<Writer>,
    decoder: Decoder,
}

impl Building {
    fn writer(&mut self) -> Result<&mut Writer> {
        self.writer.as_mut().ok_or_else(finished)
    }

    /// Adds a row whose value is in its stored form.
    fn insert_stored(&mut self, code: u32, key: &[u8], value: &[u8]) -> Result<()> {
        let writer = self.writer.as_mut().ok_or_else(finished)?;
        Ok(writer.insert(key, self.decoder.decode(code, value)?)?)
    }
}

impl OpenWriter {
    /// Returns the state. In a child made by fork, fails with `closed`: a row that the child adds
    /// would overwrite rows of its parent in the temporary files that both have open.
    fn lock(&self) -> Result<MutexGuard<'_, Building>> {
        if self.process != std::process::id() {
            return Err(finished());
        }
        // After a panic the writer fails or is abandoned; it does not publish.
        Ok(self.building.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Closes the handle and takes the writer from it. In a child made by fork, fails with `closed`
    /// and leaves the files to the parent.
    fn take(handle: u64) -> Result<Writer> {
        let open = handles::close::<Self>(handle)?;
        if open.process != std::process::id() {
            std::mem::forget(open);
            return Err(finished());
        }
        open.lock()?.writer.take().ok_or_else(finished)
    }
}

#[cold]
fn finished() -> Failure {
    Failure::closed("the snapshot writer was finished or abandoned, or belongs to another process")
}

fn options_of(options: Option<&nuthatch_snapshot_writer_options>) -> Result<WriterOptions> {
    let Some(options) = options else { return Ok(WriterOptions::new()) };
    let wrong = |name, expected, found| Err(Failure::argument(name, expected, found));
    let mut made = WriterOptions::new().seed(options.seed).shards(options.shards);
    made = made.on_duplicate(match options.on_duplicate {
        NUTHATCH_SNAPSHOT_DUPLICATE_ERROR => OnDuplicate::Error,
        NUTHATCH_SNAPSHOT_DUPLICATE_FIRST => OnDuplicate::First,
        NUTHATCH_SNAPSHOT_DUPLICATE_LAST => OnDuplicate::Last,
        found => return wrong("on_duplicate", "from 0 to 2", found),
    });
    let level = match options.compression_level {
        0 => DEFAULT_ZSTD_LEVEL,
        level @ 1..=22 => level.cast_signed(),
        found => return wrong("compression_level", "from 0 to 22", found),
    };
    made = made.compression(match options.compression {
        NUTHATCH_SNAPSHOT_COMPRESSION_NONE => Compression::None,
        NUTHATCH_SNAPSHOT_COMPRESSION_ZSTD => Compression::Zstd { level },
        found => return wrong("compression", "from 0 to 1", found),
    });
    if options.threads != 0 {
        made = made.threads(options.threads as usize);
    }
    if options.memory_bytes != 0 {
        made = made.memory(usize::try_from(options.memory_bytes).unwrap_or(usize::MAX));
    }
    if options.reserved != 0 {
        return wrong("reserved", "0", options.reserved);
    }
    Ok(made)
}

/// Starts a snapshot that `nuthatch_snapshot_writer_finish` publishes at this path. `options` may
/// be null. Returns the handle in `writer`. A file at the path is replaced when the snapshot is
/// complete. Until then, the bytes are in a temporary file in the same folder.
///
/// Rows can be added in any order and by several threads; a call waits while another thread adds
/// rows to the same writer. The bytes of the file depend on the rows and on `on_duplicate`,
/// `compression`, `compression_level`, `seed` and `shards` only; the order of rows matters only
/// among those with the same key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_create(
    path: *const u8,
    path_len: usize,
    options: *const nuthatch_snapshot_writer_options,
    writer: *mut nuthatch_snapshot_writer,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("writer", writer)?;
        let path = Path::new(OsStr::from_bytes(caller.bytes("path", path, path_len)?));
        let options = options_of(caller.maybe("options", options)?)?;
        let writer = Some(options.create(path)?);
        let building = Mutex::new(Building { writer, decoder: Decoder::default() });
        out.put(handles::create(OpenWriter { building, process: std::process::id() }));
        Ok(())
    })
}

/// Adds a row.
fn insert(
    caller: &Caller<'_>,
    writer: u64,
    (key, key_len): (*const u8, usize),
    value: Value<'_>,
) -> Result<()> {
    let key = caller.bytes("key", key, key_len)?;
    Ok(handles::find::<OpenWriter>(writer)?.lock()?.writer()?.insert(key, value)?)
}

/// Adds a row with bytes. A key has at most 65,535 bytes, a value at most 4 GiB: beyond that, all
/// functions that add rows fail with `limit`, and the writer stays usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_bytes(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let value = Value::Bytes(caller.bytes("value", value, value_len)?);
        insert(caller, writer, (key, key_len), value)
    })
}

/// Adds a row with a string in UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_string(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let value = Value::String(caller.text("value", value, value_len)?);
        insert(caller, writer, (key, key_len), value)
    })
}

/// Adds a row with a boolean: false if `value` is 0, otherwise true.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_bool(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: u32,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| insert(caller, writer, (key, key_len), Value::Bool(value != 0)))
}

/// Adds a row with an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_i64(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: i64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| insert(caller, writer, (key, key_len), Value::I64(value)))
}

/// Adds a row with a float. A NaN keeps its bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_f64(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: f64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| insert(caller, writer, (key, key_len), Value::F64(value)))
}

/// Adds a row with a list of `count` integers. A list without elements is stored as an empty list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_i64_list(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: *const i64,
    count: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let value = Value::I64List(caller.list("value", value, count)?);
        insert(caller, writer, (key, key_len), value)
    })
}

/// Adds a row with a list of `count` floats of 64 bits. A list without elements is stored as an
/// empty list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_f64_list(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: *const f64,
    count: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let value = Value::F64List(caller.list("value", value, count)?);
        insert(caller, writer, (key, key_len), value)
    })
}

/// Adds a row with a list of `count` floats of 32 bits. A list without elements is stored as an
/// empty list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_f32_list(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: *const f32,
    count: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let value = Value::F32List(caller.list("value", value, count)?);
        insert(caller, writer, (key, key_len), value)
    })
}

/// Adds a row with a list of `count` strings, each in UTF-8. A list without elements is stored as
/// an empty list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_string_list(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    value: *const nuthatch_snapshot_bytes,
    count: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let key = caller.bytes("key", key, key_len)?;
        let strings = caller.list("value", value, count)?;
        let strings = strings.iter().map(|string| caller.text("value", string.data, string.len));
        let open = handles::find::<OpenWriter>(writer)?;
        let building = &mut *open.lock()?;
        let writer = building.writer.as_mut().ok_or_else(finished)?;
        Ok(writer.insert(key, building.decoder.strings(strings)?)?)
    })
}

/// Adds a row with a value in its stored form, as docs/formats/snapshot.md describes it: numbers
/// are little-endian; a list has its elements, without a count; a list of strings has a count of 32
/// bits, for each string the offset of its end in the text as 32 bits, and the text. `type` is
/// `NUTHATCH_SNAPSHOT_BYTES` to `_EMPTY_LIST`. The value needs no alignment. A list type without
/// bytes is stored as an empty list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert(
    writer: nuthatch_snapshot_writer,
    key: *const u8,
    key_len: usize,
    r#type: u32,
    value: *const u8,
    value_len: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let key = caller.bytes("key", key, key_len)?;
        let value = caller.bytes("value", value, value_len)?;
        handles::find::<OpenWriter>(writer)?.lock()?.insert_stored(r#type, key, value)
    })
}

/// Adds rows that are packed in one array, for languages in which calls of C are expensive. Each
/// row is a type as 32 bits, the length of the key as 32 bits, the length of the value as 64 bits,
/// all little-endian, then the key, then the value as in `nuthatch_snapshot_writer_insert`. There
/// is no padding. If a row fails, the rows before it were added, and `error.position` is its index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_insert_rows(
    writer: nuthatch_snapshot_writer,
    rows: *const u8,
    rows_len: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let rows = caller.bytes("rows", rows, rows_len)?;
        let open = handles::find::<OpenWriter>(writer)?;
        let mut building = open.lock()?;
        let (mut rest, mut index) = (rows, 0);
        while !rest.is_empty() {
            let inserted = unpack(&mut rest)
                .and_then(|(code, key, value)| building.insert_stored(code, key, value));
            inserted.map_err(|failure| Failure::InRow(index, Box::new(failure)))?;
            index += 1;
        }
        Ok(())
    })
}

/// Takes a row from the start of packed rows. Returns its type code, key and value.
fn unpack<'r>(rows: &mut &'r [u8]) -> Result<(u32, &'r [u8], &'r [u8])> {
    let row = rows.split_first_chunk::<ROW_HEAD_LEN>().and_then(|(head, rest)| {
        let code = u32::from_le_bytes(*head.first_chunk()?);
        let key_len = u32::from_le_bytes(*head[4..].first_chunk()?) as usize;
        let value_len = usize::try_from(u64::from_le_bytes(*head[8..].first_chunk()?)).ok()?;
        let (key, rest) = rest.split_at_checked(key_len)?;
        let (value, rest) = rest.split_at_checked(value_len)?;
        Some(((code, key, value), rest))
    });
    let len = rows.len();
    let truncated = || Failure::argument("rows", "a whole row", format!("{len} bytes"));
    let (row, rest) = row.ok_or_else(truncated)?;
    *rows = rest;
    Ok(row)
}

/// Sets a value of the metadata: any bytes, under a name in UTF-8 of 1 to 255 bytes. Replaces an
/// earlier value of that name. Fails with `limit` for another length of the name, and if all
/// metadata would take more than 1 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_set_metadata(
    writer: nuthatch_snapshot_writer,
    name: *const u8,
    name_len: usize,
    value: *const u8,
    value_len: usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let name = caller.text("name", name, name_len)?;
        let value = caller.bytes("value", value, value_len)?;
        let open = handles::find::<OpenWriter>(writer)?;
        Ok(open.lock()?.writer()?.set_metadata(name, value)?)
    })
}

/// Writes the file, syncs it, publishes it at its path, and closes the handle. Waits for the disk.
/// `summary` may be null. If this fails, the handle is closed, too, and the path is unchanged, with
/// one exception: after `not-durable` the new file is published, but a power failure may restore
/// the old one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_finish(
    writer: nuthatch_snapshot_writer,
    summary: *mut nuthatch_snapshot_summary,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.maybe_out(summary);
        out.put(summary_of(&OpenWriter::take(writer)?.finish()?));
        Ok(())
    })
}

fn summary_of(summary: &Summary) -> nuthatch_snapshot_summary {
    nuthatch_snapshot_summary {
        entries: summary.entries,
        rows: summary.rows,
        file_bytes: summary.file_len,
        key_bytes: summary.key_bytes,
        value_bytes: summary.value_bytes,
        stored_value_bytes: summary.stored_value_bytes,
    }
}

/// Abandons a snapshot: removes its temporary files and closes the handle. The path is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_writer_abandon(
    writer: nuthatch_snapshot_writer,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| OpenWriter::take(writer).map(drop))
}
