//! Reads an item file from its beginning, batch by batch.

use crate::batch::{BatchHeader, seed};
use crate::buffer::AlignedBuffer;
use crate::checksum::checksum;
use crate::contents::Contents;
use crate::disk::Disk;
use crate::error::Damage;
use crate::items::ItemFile;
use crate::layout::{BLOCK, batch};
use crate::place::Place;
use crate::record::{ParseError, Record};
use std::ops::ControlFlow;

/// What a scan does at a batch whose checksum differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtDamage {
    /// Ends: the writer of an unsealed file died during this batch.
    Stop,
    /// Continues with the next batch if the header is valid.
    Continue,
}

/// The outcome of a scan.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) records: u64,
    pub(crate) batches: u64,
    /// The offset after the last valid batch.
    pub(crate) data_end: u64,
    pub(crate) damage: Vec<Damage>,
    /// Whether the system could not read a part of the file.
    pub(crate) has_io_error: bool,
}

/// Reads the batches from the first one to `end`, and calls `visit` for each record.
pub(crate) fn scan(
    items: &ItemFile,
    disk: &dyn Disk,
    end: u64,
    at_damage: AtDamage,
    mut visit: impl FnMut(Place, &Record<'_>) -> ControlFlow<()>,
) -> Scanned {
    let mut scan = Scan { items, disk, end, at_damage, buffer: AlignedBuffer::new(BLOCK) };
    let mut scanned = Scanned { data_end: BLOCK as u64, ..Scanned::default() };
    let (mut offset, mut sequence) = (BLOCK as u64, 0);
    while offset + BLOCK as u64 <= end {
        let header = match scan.read_batch(offset, sequence, &mut scanned) {
            Ok(header) => header,
            Err(None) => break,
            Err(Some(len)) => {
                offset += u64::from(len);
                sequence += 1;
                continue;
            }
        };
        let step = scan.visit_records(offset, header, &mut scanned, &mut visit);
        offset += u64::from(header.len);
        sequence += 1;
        scanned.data_end = offset;
        scanned.batches += 1;
        if step.is_break() {
            break;
        }
    }
    scanned
}

/// Scans an item file and rebuilds its directory.
pub(crate) fn rebuild(
    items: &ItemFile,
    disk: &dyn Disk,
    end: u64,
    at_damage: AtDamage,
) -> (Contents, Scanned) {
    let mut contents = Contents::default();
    let scanned = scan(items, disk, end, at_damage, |place, record| {
        contents.add(record, place, items.created_ms);
        ControlFlow::Continue(())
    });
    contents.batches = scanned.batches;
    (contents, scanned)
}

struct Scan<'a> {
    items: &'a ItemFile,
    disk: &'a dyn Disk,
    end: u64,
    at_damage: AtDamage,
    buffer: AlignedBuffer,
}

impl Scan<'_> {
    /// Reads the batch at an offset and compares its checksums. Returns `Err(None)` if the scan
    /// ends there, and `Err` with the length of a batch to skip.
    fn read_batch(
        &mut self,
        offset: u64,
        sequence: u64,
        scanned: &mut Scanned,
    ) -> Result<BatchHeader, Option<u32>> {
        let items = self.items;
        self.fill(BLOCK, offset, scanned)?;
        let first = &self.buffer.as_slice()[..BLOCK];
        let mut header = BatchHeader::decode(first, items.salt, offset);
        if header.is_ok_and(|header| header.sequence != sequence) {
            header = Err("expected the next batch, found another sequence number");
        }
        if header.is_ok_and(|header| u64::from(header.len) > self.end - offset) {
            header = Err("expected a batch, found one that is longer than the file");
        }
        let header = header.map_err(|reason| {
            // The preallocated bytes after the last batch are zeros.
            if self.at_damage == AtDamage::Continue || first.iter().any(|byte| *byte != 0) {
                scanned.damage.push(Damage::new(&items.name, offset, reason));
            }
            None
        })?;
        self.buffer.reserve(header.len as usize);
        self.fill(header.len as usize, offset, scanned)?;
        let data = &self.buffer.as_slice()[batch::HEADER_LEN..header.len as usize];
        if checksum(data, seed(items.salt, offset)) != header.data_check {
            let reason = "expected a batch, found another checksum of its records";
            scanned.damage.push(Damage::new(&items.name, offset, reason));
            return Err((self.at_damage == AtDamage::Continue).then_some(header.len));
        }
        Ok(header)
    }

    fn fill(&mut self, len: usize, offset: u64, scanned: &mut Scanned) -> Result<(), Option<u32>> {
        let bytes = &mut self.buffer.as_mut_slice()[..len];
        let reason = match self.disk.read(&self.items.file, &self.items.name, bytes, offset) {
            Ok(read) if read == len => return Ok(()),
            Ok(read) => format!("expected {len} bytes, found {read}"),
            Err(error) => {
                scanned.has_io_error = true;
                format!("cannot be read: {error}")
            }
        };
        scanned.damage.push(Damage::new(&self.items.name, offset, reason));
        Err(None)
    }

    fn visit_records(
        &self,
        offset: u64,
        header: BatchHeader,
        scanned: &mut Scanned,
        visit: &mut impl FnMut(Place, &Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let bytes = &self.buffer.as_slice()[..header.used as usize];
        let (mut at, mut records) = (batch::HEADER_LEN, 0);
        while at < bytes.len() {
            let record_at = offset + at as u64;
            let record = match Record::decode(&bytes[at..], seed(self.items.salt, record_at)) {
                Ok(record) => record,
                Err(error) => {
                    let reason = match error {
                        ParseError::Short { .. } => "expected a record, found a longer one",
                        ParseError::Damaged(reason) => reason,
                    };
                    scanned.damage.push(Damage::new(&self.items.name, record_at, reason));
                    return ControlFlow::Continue(());
                }
            };
            let len = record.encoded_len();
            at += len;
            records += 1;
            scanned.records += 1;
            visit(Place::of_bytes(self.items.slot, record_at, len as u64), &record)?;
        }
        if records != header.records {
            let reason = format!("expected {} records, found {records}", header.records);
            scanned.damage.push(Damage::new(&self.items.name, offset, reason));
        }
        ControlFlow::Continue(())
    }
}
