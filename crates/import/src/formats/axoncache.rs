//! Files of AxonCache (`.cache`) with linear probing, with or without shared values.
//!
//! A file has a header, a table of slots of 8 bytes, and records, one after the other in the order
//! in which they were added. All numbers are little-endian.
//!
//! | offset in the header | type | field |
//! |---|---|---|
//! | 0 | u16 | magic number, 37460 |
//! | 2 | u16 | length of the header |
//! | 8 | u16 | kind: 3 without, 4 and 5 with shared values |
//! | 40 | u64 | number of slots |
//! | 48 | u64 | number of records |
//!
//! A record is the length of the key (u16), a byte with flags (lower 5 bits) and type (upper 3
//! bits), the length of the value (24 bits), the key, and the value. With flag 16 or 1, the number
//! of a shared value (u8 or u16) is in place of the value. A file with shared values ends with
//! their number (u16), their lengths (u32 each), the values, and the length of all that and of this
//! number (u64; 0 if there are none).
//!
//! The slots are not needed to read all records. Errors report the number of the record as the
//! line.

use crate::error::RowError;
use crate::fault::RowFault;
use crate::sink::RowSink;
use nuthatch_snapshot::{StringListBuf, Value};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

const MAGIC: u16 = 37460;
const HEADER_LEN: usize = 104;
const RECORD_HEADER_LEN: usize = 6;
/// The kind of files without shared values, and the kinds of those with shared values.
const PLAIN: u16 = 3;
const WITH_SHARED: [u16; 2] = [4, 5];
/// Flags of a record: the number of a shared value has 8 or 16 bits.
const SHARED_U8: u8 = 16;
const SHARED_U16: u8 = 1;
/// The approximate length of a block in bytes, unless a single record is longer.
const BLOCK_LEN: usize = 1 << 20;

/// The records of a file, which are read in blocks.
pub(crate) struct Records {
    reader: BufReader<File>,
    /// The offset in the file of the next record, and of the end of the records.
    at: u64,
    end: u64,
    /// Number of records returned so far, and of all records.
    count: u64,
    total: u64,
}

/// A block of whole records, and the position up to which it is parsed.
pub(crate) struct Block {
    bytes: Vec<u8>,
    at: usize,
    /// The number of the next record, counted from one.
    record: u64,
}

impl Block {
    /// Returns whether all records are parsed.
    pub(crate) fn is_done(&self) -> bool {
        self.at == self.bytes.len()
    }
}

/// A parser of blocks, with the shared values of the file.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    shared: Vec<Vec<u8>>,
}

/// The buffers of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    f32s: Vec<f32>,
    strings: StringListBuf,
}

/// Opens a file. Returns the parser of its blocks, and its records.
pub(crate) fn open(mut file: File) -> Result<(Parser, Records), String> {
    let len = file.metadata().map_err(|e| format!("stat: {e}"))?.len();
    let mut header = [0; HEADER_LEN];
    if len < HEADER_LEN as u64 {
        return Err(format!(
            "expected an AxonCache file of at least {HEADER_LEN} bytes, found {len}"
        ));
    }
    file.read_exact(&mut header).map_err(|e| format!("read: {e}"))?;
    let (magic, header_len, kind) = (u16_at(&header, 0), u16_at(&header, 2), u16_at(&header, 8));
    if magic != MAGIC {
        return Err(format!("at byte 0: expected {MAGIC}, as in AxonCache files, found {magic}"));
    }
    if kind != PLAIN && !WITH_SHARED.contains(&kind) {
        let expected = "expected an AxonCache file of kind 3, 4 or 5 (linear probing)";
        return Err(format!("at byte 8: {expected}, found {kind}; build it from its text instead"));
    }
    let (slots, total) = (u64_at(&header, 40), u64_at(&header, 48));
    let start = slots.checked_mul(8).and_then(|slots| slots.checked_add(u64::from(header_len)));
    let (end, parser) = match kind {
        PLAIN => (len, Parser::default()),
        _ => shared_values(&mut file, len)?,
    };
    let Some(at) = start.filter(|start| *start <= end && usize::from(header_len) >= HEADER_LEN)
    else {
        let found = format!("{slots} slots after a header of {header_len} bytes");
        return Err(format!("at byte 40: expected slots within {end} bytes, found {found}"));
    };
    file.seek(SeekFrom::Start(at)).map_err(|e| format!("seek: {e}"))?;
    let reader = BufReader::with_capacity(1 << 16, file);
    Ok((parser, Records { reader, at, end, count: 0, total }))
}

/// Reads the shared values at the end of a file. Returns where they begin, and the parser.
fn shared_values(file: &mut File, len: u64) -> Result<(u64, Parser), String> {
    let mut read = |at: u64, len: u64| {
        let mut bytes = vec![0; len as usize];
        let seek = file.seek(SeekFrom::Start(at));
        seek.and_then(|_| file.read_exact(&mut bytes)).map_err(|e| format!("read: {e}"))?;
        Ok::<_, String>(bytes)
    };
    let tail = len - 8;
    let table_len = u64_at(&read(tail, 8)?, 0);
    if table_len == 0 {
        return Ok((tail, Parser::default()));
    }
    if !(10..=len - HEADER_LEN as u64).contains(&table_len) {
        let max = len - HEADER_LEN as u64;
        return Err(format!(
            "at byte {tail}: expected a length from 10 to {max}, found {table_len}"
        ));
    }
    let start = len - table_len;
    let table = read(start, table_len - 8)?;
    let count = usize::from(u16_at(&table, 0));
    let (lens, mut values) = match table.get(2..).and_then(|rest| rest.split_at_checked(4 * count))
    {
        Some((lens, values)) => (lens.as_chunks::<4>().0, values),
        None => return Err(format!("at byte {start}: expected the lengths of {count} values")),
    };
    let mut shared = Vec::with_capacity(count);
    for len in lens {
        let Some((value, rest)) = values.split_at_checked(u32::from_le_bytes(*len) as usize) else {
            return Err(format!("at byte {start}: expected {count} shared values, found less"));
        };
        shared.push(value.to_vec());
        values = rest;
    }
    if !values.is_empty() {
        let found = values.len();
        return Err(format!(
            "at byte {tail}: expected {count} shared values, found {found} bytes more"
        ));
    }
    Ok((start, Parser { shared }))
}

impl Records {
    /// Reads the next block. Returns its length in the file, too.
    pub(crate) fn next(&mut self) -> Result<Option<(Block, u64)>, String> {
        let mut block = Block { bytes: Vec::new(), at: 0, record: self.count + 1 };
        while self.count < self.total && block.bytes.len() < BLOCK_LEN {
            self.read(RECORD_HEADER_LEN, &mut block.bytes)?;
            let header = Header::of(&block.bytes[block.bytes.len() - RECORD_HEADER_LEN..]);
            self.read(header.key_len + header.stored_len(), &mut block.bytes)?;
            self.count += 1;
        }
        if block.bytes.is_empty() && self.at != self.end {
            let Self { at, end, total, .. } = self;
            return Err(format!("at byte {at}: expected the end of {total} records at {end}"));
        }
        let len = block.bytes.len() as u64;
        Ok((len > 0).then_some((block, len)))
    }

    /// Appends bytes of a record.
    fn read(&mut self, len: usize, bytes: &mut Vec<u8>) -> Result<(), String> {
        let Self { at, end, count, total, .. } = *self;
        if len as u64 > end - at {
            let number = count + 1;
            let found = format!("the end of the records at {end}");
            return Err(format!(
                "at byte {at}: expected {len} bytes of record {number} of {total}, found {found}"
            ));
        }
        let start = bytes.len();
        bytes.resize(start + len, 0);
        self.reader.read_exact(&mut bytes[start..]).map_err(|e| format!("read: {e}"))?;
        self.at += len as u64;
        Ok(())
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy)]
struct Header {
    key_len: usize,
    flags: u8,
    value_type: u8,
    value_len: usize,
}

impl Header {
    fn of(bytes: &[u8]) -> Self {
        let value_len = usize::from(u16_at(bytes, 3)) | usize::from(bytes[5]) << 16;
        let key_len = usize::from(u16_at(bytes, 0));
        Self { key_len, flags: bytes[2] & 31, value_type: bytes[2] >> 5, value_len }
    }

    /// Returns the length of the value, or of the number of a shared value.
    fn stored_len(self) -> usize {
        match self.flags {
            SHARED_U8 => 1,
            SHARED_U16 => 2,
            _ => self.value_len,
        }
    }
}

impl Parser {
    /// Parses records until the block ends or the sink is full.
    pub(crate) fn parse<S: RowSink>(
        &self,
        block: &mut Block,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowError> {
        while !block.is_done() {
            let record = &block.bytes[block.at..];
            let header = Header::of(record);
            let key_end = RECORD_HEADER_LEN + header.key_len;
            let end = key_end + header.stored_len();
            let error = |(expected, found): (&'static str, String)| {
                RowError::at(block.record, 1, expected, found)
            };
            let bytes = self.value(header, &record[key_end..end]).map_err(error)?;
            let value = typed(header.value_type, bytes, buffers).map_err(error)?;
            let key = &record[RECORD_HEADER_LEN..key_end];
            let number = block.record;
            sink.row(number, key, value).map_err(|error| match RowFault::from_sink(0, error) {
                RowFault::Text(fault) => fault.into_error(number, 1),
                RowFault::Sink(error) => RowError::Sink(error),
            })?;
            block.at += end;
            block.record += 1;
            if sink.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the bytes of a value.
    fn value<'a>(&'a self, header: Header, stored: &'a [u8]) -> Result<&'a [u8], Expected> {
        let number = match (header.flags, stored) {
            (SHARED_U8, [number]) => usize::from(*number),
            (SHARED_U16, [low, high]) => usize::from(u16::from_le_bytes([*low, *high])),
            (0, _) => return Ok(stored),
            (flags, _) => return Err(("the flags 0, 1 or 16", flags.to_string())),
        };
        let value = self.shared.get(number);
        value.map(|value| &value[..]).ok_or(("the number of a shared value", number.to_string()))
    }
}

/// What was expected and what was found.
type Expected = (&'static str, String);

/// Returns the value of a type.
fn typed<'a>(
    value_type: u8,
    bytes: &'a [u8],
    buffers: &'a mut Buffers,
) -> Result<Value<'a>, Expected> {
    Ok(match value_type {
        0 => {
            let text = bytes.strip_suffix(b"\0").unwrap_or(bytes);
            std::str::from_utf8(text).map_or(Value::Bytes(text), Value::String)
        }
        1 => {
            let read = string_list(bytes, &mut buffers.strings);
            read.ok_or(("a list of strings in UTF-8", format!("{} other bytes", bytes.len())))?;
            match buffers.strings.as_list() {
                list if list.is_empty() => Value::EmptyList,
                list => Value::StringList(list),
            }
        }
        2 => Value::Bool(number::<1>(bytes)?[0] != 0),
        3 => Value::I64(i64::from_le_bytes(number(bytes)?)),
        4 => Value::F64(f64::from_le_bytes(number(bytes)?)),
        5 => Value::I64(i32::from_le_bytes(number(bytes)?).into()),
        6 => Value::F64(f32::from_le_bytes(number(bytes)?).into()),
        _ => {
            let (floats, rest) = bytes.as_chunks::<4>();
            if !rest.is_empty() {
                let found = format!("{} bytes", bytes.len());
                return Err(("a list of 32-bit floats", found));
            }
            buffers.f32s.clear();
            buffers.f32s.extend(floats.iter().map(|float| f32::from_le_bytes(*float)));
            match &buffers.f32s[..] {
                [] => Value::EmptyList,
                floats => Value::F32List(floats),
            }
        }
    })
}

/// Returns the bytes of a number.
fn number<const LEN: usize>(bytes: &[u8]) -> Result<[u8; LEN], Expected> {
    let expected = match LEN {
        1 => "a value of 1 byte",
        4 => "a value of 4 bytes",
        _ => "a value of 8 bytes",
    };
    bytes.try_into().map_err(|_| (expected, format!("{} bytes", bytes.len())))
}

/// Reads a list: the number of strings (u16), and for each its length (u16), its text and a zero.
fn string_list(bytes: &[u8], strings: &mut StringListBuf) -> Option<()> {
    strings.clear();
    let (count, mut rest) = bytes.split_first_chunk::<2>()?;
    for _ in 0..u16::from_le_bytes(*count) {
        let (len, text) = rest.split_first_chunk::<2>()?;
        let (text, after) = text.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
        strings.push(std::str::from_utf8(text).ok()?);
        rest = after.strip_prefix(b"\0")?;
    }
    rest.is_empty().then_some(())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
