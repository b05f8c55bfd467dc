//! Appends records to the open item file.

use crate::batch::{BatchHeader, seed};
use crate::buffer::AlignedBuffer;
use crate::checksum::{Checksum, checksum};
use crate::contents::Contents;
use crate::directory::{sealed_len, single_record_len};
use crate::error::Result;
use crate::items::ItemFile;
use crate::layout::{BLOCK, UNIT, UNIT_BITS, batch, blocks_len};
use crate::place::Place;
use crate::record::Record;
use crate::record_id::RecordId;
use crate::seal::seal;
use crate::shared::Shared;
use std::sync::Arc;

/// The open item file, and the batch that is being filled.
///
/// An operation that fails changes nothing: the records of the batch stay in the buffer, and the
/// next operation tries to write them again, at the same offset.
pub(crate) struct Writer {
    open: Option<OpenItems>,
    /// The batch.
    buffer: AlignedBuffer,
    /// Bytes of the batch in use, with its header; zero if there are no records in it.
    used: usize,
    records: u32,
    /// A block for headers, so that the batch is kept while a file is created.
    block: AlignedBuffer,
    file_len: u64,
}

struct OpenItems {
    items: Arc<ItemFile>,
    /// The length up to which the file may be filled, with directory and footer.
    limit: u64,
    /// The offset of the batch.
    offset: u64,
    /// Records of the batch included.
    contents: Contents,
}

impl OpenItems {
    /// Returns whether the file has room for a batch of `batch_len` bytes with `records` that are
    /// not in `contents`.
    fn has_room(&self, batch_len: u64, records: u64) -> bool {
        let data_end = self.offset + blocks_len(batch_len);
        sealed_len(data_end, self.contents.records() + records) <= self.limit
    }
}

impl Writer {
    pub(crate) fn new(file_len: u64, batch_len: usize) -> Self {
        let (buffer, block) = (AlignedBuffer::new(batch_len), AlignedBuffer::new(BLOCK));
        Self { open: None, buffer, used: 0, records: 0, block, file_len }
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let entries = self.open.as_ref().map_or(0, |open| open.contents.entries.capacity());
        (self.buffer.len() + self.block.len() + 2 * BLOCK + entries) as u64
    }

    /// Returns the number of the open item file.
    pub(crate) fn open_number(&self) -> Option<u64> {
        Some(self.open.as_ref()?.items.number)
    }

    /// Returns the id of the next record if it may be appended to the open item file.
    pub(crate) fn next_id(&self) -> Option<RecordId> {
        let open = self.open.as_ref()?;
        let offset = open.offset + self.used.max(batch::HEADER_LEN) as u64;
        // A record that is longer than other files has its own one.
        let unit =
            u32::try_from(offset / UNIT as u64).ok().filter(|unit| *unit < 1 << UNIT_BITS)?;
        Some(RecordId { file: open.items.number, unit })
    }

    /// Returns the number of records in the open item file, with those of the batch.
    pub(crate) fn open_records(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.contents.records())
    }

    /// Returns the length of a new file for a record of `record_len` bytes.
    pub(crate) fn new_file_len(&self, record_len: u64) -> u64 {
        self.file_len.max(single_record_len(record_len))
    }

    /// Forgets the open file and the batch.
    pub(crate) fn discard(&mut self) {
        self.open = None;
        self.used = 0;
        self.records = 0;
    }

    /// Appends a record. See [`Tier::append`](crate::Tier::append).
    pub(crate) fn append(
        &mut self,
        shared: &Shared,
        record: &Record<'_>,
        now_ms: u64,
    ) -> Result<Place> {
        record.check_lengths()?;
        let len = record.encoded_len();
        let fits_batch = batch::HEADER_LEN + len <= self.buffer.len();
        if self.used > 0 && (!fits_batch || self.used + len > self.buffer.len()) {
            self.flush(shared)?;
        }
        let start = self.used.max(batch::HEADER_LEN);
        let batch_len = (start + len) as u64;
        if self.open.as_ref().is_none_or(|open| !open.has_room(batch_len, 1)) {
            self.seal(shared, now_ms)?;
            let len = self.new_file_len(len as u64);
            let items = shared.create_items(len, now_ms, self.block.as_mut_slice())?;
            let contents = Contents::default();
            self.open = Some(OpenItems { items, limit: len, offset: BLOCK as u64, contents });
        }
        // The batch is empty if a file was sealed.
        let start = self.used.max(batch::HEADER_LEN);
        let Some(open) = &mut self.open else { unreachable!("an open file") };
        let record_at = open.offset + start as u64;
        let place = Place::of_bytes(open.items.slot, record_at, len as u64);
        if fits_batch {
            let out = &mut self.buffer.as_mut_slice()[start..start + len];
            record.encode(out, seed(open.items.salt, record_at));
            self.used = start + len;
            self.records += 1;
        } else {
            write_single(shared, open, record, self.buffer.as_mut_slice())?;
        }
        open.contents.add(record, place, open.items.created_ms);
        let id = RecordId { file: open.items.number, unit: place.unit };
        shared.removal_log.note_record(id);
        Ok(place)
    }

    /// Writes the batch. See [`Tier::flush`](crate::Tier::flush).
    pub(crate) fn flush(&mut self, shared: &Shared) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if self.used == 0 {
            return Ok(());
        }
        let len = self.used.next_multiple_of(BLOCK);
        let bytes = &mut self.buffer.as_mut_slice()[..len];
        bytes[self.used..].fill(0);
        let salt = open.items.salt;
        let header = BatchHeader {
            sequence: open.contents.batches,
            len: len as u32,
            used: self.used as u32,
            records: self.records,
            data_check: checksum(&bytes[batch::HEADER_LEN..], seed(salt, open.offset)),
        };
        header.encode(bytes, salt, open.offset);
        shared.write(&open.items, bytes, open.offset)?;
        open.end_batch(len as u64);
        self.used = 0;
        self.records = 0;
        Ok(())
    }

    /// Seals the open file. See [`Tier::seal`](crate::Tier::seal).
    pub(crate) fn seal(&mut self, shared: &Shared, now_ms: u64) -> Result<()> {
        self.flush(shared)?;
        let Some(open) = &self.open else { return Ok(()) };
        let items = &open.items;
        if open.contents.batches == 0 {
            shared.remove_items(items.number)?;
        } else {
            let buffer = self.buffer.as_mut_slice();
            seal(shared, items, &open.contents, open.offset, now_ms, buffer)?;
        }
        self.open = None;
        Ok(())
    }
}

impl OpenItems {
    fn end_batch(&mut self, len: u64) {
        self.offset += len;
        self.contents.batches += 1;
        self.items.set_records(self.contents.live_bytes, self.contents.records());
        self.items.publish(self.offset);
    }
}

/// Writes a batch of one record that is longer than the buffer, in pieces. An incomplete batch is
/// not valid, because its checksum differs.
fn write_single(
    shared: &Shared,
    open: &mut OpenItems,
    record: &Record<'_>,
    buffer: &mut [u8],
) -> Result<()> {
    let (salt, offset) = (open.items.salt, open.offset);
    let head = record.head(seed(salt, offset + batch::HEADER_LEN as u64));
    let used = batch::HEADER_LEN + record.encoded_len();
    let len = used.next_multiple_of(BLOCK);
    let parts = [head.as_bytes(), record.key, record.value];
    let mut sum = Checksum::new(seed(salt, offset));
    let unpadded = batch::HEADER_LEN + parts.iter().map(|part| part.len()).sum::<usize>();
    for part in parts.into_iter().chain([&[0; BLOCK][..len - unpadded]]) {
        sum.add(part);
    }
    let header = BatchHeader {
        sequence: open.contents.batches,
        len: len as u32,
        used: used as u32,
        records: 1,
        data_check: sum.finish(),
    };
    header.encode(buffer, salt, offset);
    let (mut filled, mut written) = (batch::HEADER_LEN, offset);
    for mut part in parts {
        while !part.is_empty() {
            let (now, later) = part.split_at(part.len().min(buffer.len() - filled));
            buffer[filled..filled + now.len()].copy_from_slice(now);
            filled += now.len();
            part = later;
            if filled == buffer.len() {
                shared.write(&open.items, buffer, written)?;
                written += filled as u64;
                filled = 0;
            }
        }
    }
    let last = &mut buffer[..filled.next_multiple_of(BLOCK)];
    last[filled..].fill(0);
    if !last.is_empty() {
        shared.write(&open.items, last, written)?;
    }
    open.end_batch(len as u64);
    Ok(())
}
