//! Encoding of a partition: its index lines and its records.

use super::buffer::Buffers;
use super::compare;
use super::compress::Compressor;
use super::placement::Placement;
use super::plan::Shape;
use super::row::{Payload, Row, RowRef};
use super::share::Role;
use super::spill::SpillFile;
use crate::error::Result;
use crate::format::hash::KeyHash;
use crate::format::layout::{line as line_at, record};
use crate::format::record::RecordPlan;
use crate::format::totals::Totals;
use crate::values::ValueType;
use std::collections::{HashMap, HashSet};

/// Number of rows between the row that is written and the row that is prefetched.
const PREFETCH_DISTANCE: usize = 12;

/// An encoded partition. Offsets count from the start of its data.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// The lines of the index.
    pub(crate) lines: Vec<u8>,
    /// The data without the blobs.
    pub(crate) data: Vec<u8>,
    /// The blobs of the data, in order.
    pub(crate) blobs: Vec<BlobPiece>,
    /// Shared values that records of this partition store, by offset.
    pub(crate) sources: Vec<Source>,
    /// References whose offsets are not filled in yet.
    pub(crate) references: Vec<Reference>,
    pub(crate) totals: Totals,
    /// Total length of the blobs.
    blob_bytes: u64,
}

/// A blob of the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlobPiece {
    /// Number of bytes of `data` before the blob.
    pub(crate) before: usize,
    /// Offset in the blob file.
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// A shared value that a record stores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// The number of the value.
    pub(crate) number: u64,
    pub(crate) row: RowRef,
    pub(crate) value_type: ValueType,
    pub(crate) compressed: bool,
    /// Offset of the stored value.
    pub(crate) offset: u64,
    pub(crate) stored_len: u64,
}

/// A reference to a shared value.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// The number of the value.
    pub(crate) number: u64,
    pub(crate) row: RowRef,
    /// Index in `data` of the six bytes of the reference.
    pub(crate) at: usize,
    /// The compressed value, if it is needed to compare the row's value with the stored one.
    pub(crate) frame: Option<Box<Frame>>,
}

/// A compressed value: in memory, or in the blob file if the value was there.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Memory(Vec<u8>),
    Blob { offset: u64, len: u64 },
}

impl Frame {
    /// Returns the length of the frame in bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Blob { len, .. } => *len,
        }
    }

    /// Returns the location of the frame.
    pub(crate) fn bytes<'a>(&'a self, blobs: &'a SpillFile) -> compare::Bytes<'a> {
        match self {
            Self::Memory(bytes) => compare::Bytes::Memory(bytes),
            Self::Blob { offset, .. } => compare::Bytes::Blob(blobs, *offset),
        }
    }
}

impl Image {
    /// Returns the length of the data including its blobs.
    pub(crate) fn data_len(&self) -> u64 {
        self.data.len() as u64 + self.blob_bytes
    }

    /// Returns the row whose shared value is stored at this offset of the partition.
    pub(crate) fn source_at(&self, offset: Option<u64>) -> Option<RowRef> {
        // Sources are in the order of their offsets.
        let found = self.sources.binary_search_by_key(&offset?, |source| source.offset).ok()?;
        Some(self.sources[found].row)
    }

    /// Clears the image. Keeps its memory, because allocating it for each partition costs more than
    /// filling it.
    fn clear(&mut self) {
        self.lines.clear();
        self.data.clear();
        self.blobs.clear();
        self.sources.clear();
        self.references.clear();
        self.totals = Totals::default();
        self.blob_bytes = 0;
    }

    /// Appends a blob to the data.
    fn push_blob(&mut self, offset: u64, len: u64) {
        self.blobs.push(BlobPiece { before: self.data.len(), offset, len });
        self.blob_bytes += len;
    }

    /// Appends zeros to the data up to this offset.
    #[inline]
    fn pad_to(&mut self, at: u64) {
        let pad = (at - self.data_len()) as usize;
        self.data.extend_from_slice(&[0; 64][..pad.min(64)]);
        if pad > 64 {
            self.data.resize(self.data.len() + pad - 64, 0);
        }
    }
}

/// The stored bytes of a planned record's value. Boxes keep it small, because most are the row's.
enum StoredBytes {
    /// The value of the row.
    Row,
    /// The compressed value of the row.
    Compressed(Box<Frame>),
    /// A reference to the shared value with this number, and the frame to keep.
    Reference(u64, Option<Box<Frame>>),
}

/// A record that is planned but not written.
struct PlannedRecord<'a> {
    at: RowRef,
    row: Row<'a>,
    plan: RecordPlan,
    stored: StoredBytes,
    /// The number of the shared value that the record stores.
    source: Option<u64>,
}

/// The stored form of the value of a row. Values whose hashes collide have the same number.
#[derive(Clone, Copy)]
struct StoredForm {
    row: RowRef,
    compressed: bool,
    len: u64,
}

/// Encodes partitions, on one thread.
pub(crate) struct Emitter<'a> {
    shape: Shape,
    compressor: Compressor<'a>,
    blobs: &'a SpillFile,
    /// Whether references keep the compressed form of their value. Needed if rows were spilled.
    keep_frames: bool,
    /// The stored forms of the shared values that this thread compressed last, by number.
    stored_forms: HashMap<u64, StoredForm>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        shape: Shape,
        compressor: Compressor<'a>,
        blobs: &'a SpillFile,
        keep_frames: bool,
    ) -> Self {
        let stored_forms = HashMap::new();
        Self { shape, compressor, blobs, keep_frames, stored_forms }
    }

    /// Clears what is remembered of rows by their location. Required before rows of other buffers.
    pub(crate) fn forget_rows(&mut self) {
        self.stored_forms.clear();
    }

    /// Encodes the rows of one partition. All rows are unshared if `roles` is empty. Rows in
    /// `unshared` store their value regardless of their role.
    pub(crate) fn write(
        &mut self,
        image: &mut Image,
        buffers: Buffers<'_>,
        (refs, roles): (&[RowRef], &[Role]),
        unshared: &HashSet<RowRef>,
    ) -> Result<()> {
        let placement = Placement::of(refs, self.shape)?;
        image.clear();
        image.lines.reserve(self.shape.lines_per_partition as usize * line_at::LEN);
        image.data.reserve(refs.len() * 32);
        image.totals.max_probe = placement.max_probe;
        let mut planned = Vec::with_capacity(line_at::SLOTS);
        placement.for_each_line(|rows, overflow| {
            planned.clear();
            for &row in rows {
                if let Some(&ahead) = refs.get(row as usize + PREFETCH_DISTANCE) {
                    buffers.prefetch(ahead);
                }
                let (at, role) = (refs[row as usize], roles.get(row as usize));
                let role = match role.copied().unwrap_or(Role::Unshared) {
                    Role::Reference(_) if unshared.contains(&at) => Role::Unshared,
                    role => role,
                };
                self.plan(buffers, at, role, &mut planned)?;
            }
            Self::write_line(image, &planned, overflow);
            Ok(())
        })
    }

    /// Plans the record of a row.
    #[inline]
    fn plan<'r>(
        &mut self,
        buffers: Buffers<'r>,
        at: RowRef,
        role: Role,
        planned: &mut Vec<PlannedRecord<'r>>,
    ) -> Result<()> {
        let row = buffers.row(at);
        let (stored, compressed, stored_len) = match role {
            Role::Reference(number) => self.plan_reference(buffers, number, (at, &row))?,
            Role::Unshared | Role::Source(_) => match self.compress(&row)? {
                Some(frame) => {
                    let len = frame.len();
                    (StoredBytes::Compressed(frame.into()), true, len)
                }
                None => (StoredBytes::Row, false, row.value_len),
            },
        };
        let plan = RecordPlan {
            value_type: row.value_type,
            compressed,
            shared: matches!(stored, StoredBytes::Reference(..)),
            key_len: row.key.len(),
            stored_len,
        };
        let source = if let Role::Source(number) = role { Some(number) } else { None };
        planned.push(PlannedRecord { at, row, plan, stored, source });
        Ok(())
    }

    /// Plans a reference. The record of a reference has the compression and the stored length of
    /// the shared value. They are those that this row's value would have, because equal values
    /// compress to equal frames.
    fn plan_reference(
        &mut self,
        buffers: Buffers<'_>,
        number: u64,
        (at, row): (RowRef, &Row<'_>),
    ) -> Result<(StoredBytes, bool, u64)> {
        if !self.compressor.tries(row) {
            return Ok((StoredBytes::Reference(number, None), false, row.value_len));
        }
        if let Some(&form) = self.stored_forms.get(&number)
            && !self.keep_frames
            && compare::same_value(row, &buffers.row(form.row), self.blobs)?
        {
            return Ok((StoredBytes::Reference(number, None), form.compressed, form.len));
        }
        let frame = self.compress(row)?;
        let len = frame.as_ref().map_or(row.value_len, Frame::len);
        let compressed = frame.is_some();
        if !self.keep_frames {
            self.stored_forms.insert(number, StoredForm { row: at, compressed, len });
        }
        let kept = frame.filter(|_| self.keep_frames).map(Box::new);
        Ok((StoredBytes::Reference(number, kept), compressed, len))
    }

    /// Compresses the row's value. Returns `None` if it is stored uncompressed.
    fn compress(&mut self, row: &Row<'_>) -> Result<Option<Frame>> {
        let Some(bytes) = self.compressor.compress(row)? else { return Ok(None) };
        if let Payload::Bytes(_) = row.payload {
            return Ok(Some(Frame::Memory(bytes)));
        }
        let (offset, len) = (self.blobs.append(&bytes)?, bytes.len() as u64);
        Ok(Some(Frame::Blob { offset, len }))
    }

    /// Appends a line of the index and its records.
    fn write_line(image: &mut Image, planned: &[PlannedRecord<'_>], overflow: u8) {
        // The base is aligned for all values, so offsets from it determine their alignment.
        let align = planned.iter().map(|record| record.plan.align()).max().unwrap_or(1);
        image.pad_to(image.data_len().next_multiple_of(align as u64));
        let base = image.data_len();
        let shift = shift_of(planned);
        let mut line = [0; line_at::LEN];
        for (slot, record) in planned.iter().enumerate() {
            let offset = record.plan.begin(image.data_len() - base, shift);
            image.pad_to(base + offset);
            let fingerprint = KeyHash(record.at.hash).fingerprint();
            let units = (offset >> shift) as u16;
            for (field, number) in [(line_at::FINGERPRINTS, fingerprint), (line_at::OFFSETS, units)]
            {
                let at = field + 2 * slot;
                line[at..at + 2].copy_from_slice(&number.to_le_bytes());
            }
            Self::write_record(image, record, shift);
        }
        line[line_at::SHIFT] = shift;
        line[line_at::OVERFLOW] = overflow;
        line[line_at::BASE..].copy_from_slice(&base.to_le_bytes()[..6]);
        image.lines.extend_from_slice(&line);
    }

    /// Appends a record.
    #[inline]
    fn write_record(image: &mut Image, record: &PlannedRecord<'_>, shift: u8) {
        let PlannedRecord { at, row, plan, stored, source } = record;
        let value_at = plan.value_at(image.data_len(), shift);
        plan.write_head(&mut image.data, shift);
        append(&mut image.data, row.key);
        image.pad_to(value_at);
        if let Some(number) = *source {
            let RecordPlan { value_type, compressed, stored_len, .. } = *plan;
            let (row, offset) = (*at, value_at);
            image.sources.push(Source { number, row, value_type, compressed, offset, stored_len });
        }
        match (stored, row.payload) {
            (StoredBytes::Reference(number, frame), _) => {
                let (number, row, frame) = (*number, *at, frame.clone());
                image.references.push(Reference { number, row, at: image.data.len(), frame });
                image.data.extend_from_slice(&[0; record::REFERENCE_LEN]);
            }
            (StoredBytes::Row, Payload::Bytes(bytes)) => append(&mut image.data, bytes),
            (StoredBytes::Row, Payload::Blob(blob)) => image.push_blob(blob.offset, row.value_len),
            (StoredBytes::Compressed(frame), _) => match &**frame {
                Frame::Memory(bytes) => image.data.extend_from_slice(bytes),
                Frame::Blob { offset, len } => image.push_blob(*offset, *len),
            },
        }
        count(&mut image.totals, row, plan);
    }
}

/// Appends bytes. Most keys and values are short, and calling `memcpy` costs more than the copy
/// itself. So 8 to 16 bytes are copied as two words that overlap.
#[inline]
fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    match (bytes.len(), bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (len @ 8..=16, Some(first), Some(last)) => {
            let last_at = out.len() + len - 8;
            out.extend_from_slice(first);
            out.truncate(last_at);
            out.extend_from_slice(last);
        }
        _ => out.extend_from_slice(bytes),
    }
}

/// Adds an entry to the counts.
fn count(totals: &mut Totals, row: &Row<'_>, plan: &RecordPlan) {
    totals.entries += 1;
    totals.key_bytes += row.key.len() as u64;
    totals.value_bytes += row.value_len;
    totals.stored_value_bytes += if plan.shared { 0 } else { plan.stored_len };
    totals.shared += u64::from(plan.shared);
    totals.compressed += u64::from(plan.compressed);
    totals.by_type[usize::from(row.value_type.code())] += 1;
}

/// Returns the minimum shift with which the offsets of all these records fit in 16 bits.
fn shift_of(planned: &[PlannedRecord<'_>]) -> u8 {
    let last_offset = |shift: u8| {
        let mut offset = 0;
        let mut end = 0;
        for record in planned {
            offset = record.plan.begin(end, shift);
            end = record.plan.end(offset, shift);
        }
        offset >> shift
    };
    let mut shift = 0;
    while last_offset(shift) > u64::from(u16::MAX) {
        shift += 1;
    }
    shift
}
