//! One partition as bytes: its lines of the index, and its records.

use super::compare;
use super::place::Placement;
use super::plan::Shape;
use super::row::RowRef;
use super::row::{Payload, Row};
use super::rows::Buffers;
use super::share::Role;
use super::spill::SpillFile;
use crate::compression::Compressor;
use crate::error::Result;
use crate::hash::KeyHash;
use crate::layout::{line as line_at, record};
use crate::record::RecordPlan;
use crate::value::ValueType;
use std::collections::{HashMap, HashSet};

/// Rows this far ahead are asked for while one is written.
const AHEAD: usize = 12;

/// A partition, its offsets counted from the start of its own data.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// The lines of the index.
    pub(crate) lines: Vec<u8>,
    /// The data, but for the blobs.
    pub(crate) data: Vec<u8>,
    /// Blobs, and where in `data` they belong. In order.
    pub(crate) blobs: Vec<BlobPiece>,
    /// Values others refer to.
    pub(crate) sources: Vec<Source>,
    /// References that wait for the offset of their value.
    pub(crate) references: Vec<Reference>,
    pub(crate) totals: Totals,
    blob_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BlobPiece {
    pub(crate) before: usize,
    /// Where the blob lies in the file of blobs.
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) number: u64,
    pub(crate) row: RowRef,
    pub(crate) value_type: ValueType,
    pub(crate) compressed: bool,
    /// Offset of the stored value.
    pub(crate) offset: u64,
    pub(crate) stored_len: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) number: u64,
    pub(crate) row: RowRef,
    /// Where in `data` the six bytes are.
    pub(crate) at: usize,
    /// The value as it would be stored, where that is needed to compare it and is not the row's.
    pub(crate) frame: Option<Box<Frame>>,
}

/// A compressed value. It waits where the value waited.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Memory(Vec<u8>),
    Blob { offset: u64, len: u64 },
}

impl Frame {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Blob { len, .. } => *len,
        }
    }

    pub(crate) fn bytes<'a>(&'a self, blobs: &'a SpillFile) -> compare::Bytes<'a> {
        match self {
            Self::Memory(bytes) => compare::Bytes::Memory(bytes),
            Self::Blob { offset, .. } => compare::Bytes::Spilled(blobs, *offset),
        }
    }
}

/// What the header tells about all entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) entries: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) stored_value_bytes: u64,
    pub(crate) shared: u64,
    pub(crate) compressed: u64,
    pub(crate) by_type: [u64; 16],
    pub(crate) max_probe: u32,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.key_bytes += other.key_bytes;
        self.value_bytes += other.value_bytes;
        self.stored_value_bytes += other.stored_value_bytes;
        self.shared += other.shared;
        self.compressed += other.compressed;
        for (sum, count) in self.by_type.iter_mut().zip(other.by_type) {
            *sum += count;
        }
        self.max_probe = self.max_probe.max(other.max_probe);
    }
}

impl Image {
    /// Length of the data with its blobs.
    pub(crate) fn data_len(&self) -> u64 {
        self.data.len() as u64 + self.blob_bytes
    }

    /// Returns the row whose value is stored at this offset of the partition and is shared.
    pub(crate) fn source_at(&self, offset: Option<u64>) -> Option<RowRef> {
        // Values were written in order.
        let found = self.sources.binary_search_by_key(&offset?, |source| source.offset).ok()?;
        Some(self.sources[found].row)
    }

    /// Empties the image and keeps its memory: fresh memory for each partition costs more than
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

    fn push_blob(&mut self, offset: u64, len: u64) {
        self.blobs.push(BlobPiece { before: self.data.len(), offset, len });
        self.blob_bytes += len;
    }

    #[inline]
    fn pad_to(&mut self, at: u64) {
        let pad = (at - self.data_len()) as usize;
        self.data.extend_from_slice(&[0; 64][..pad.min(64)]);
        if pad > 64 {
            self.data.resize(self.data.len() + pad - 64, 0);
        }
    }
}

/// Where the bytes of a planned record's value come from. Small, since most are the row's.
enum From {
    Row,
    Compressed(Box<Frame>),
    /// The number of the shared value, and the frame to keep.
    Reference(u64, Option<Box<Frame>>),
}

struct Planned<'a> {
    at: RowRef,
    row: Row<'a>,
    plan: RecordPlan,
    from: From,
    source: Option<u64>,
}

/// How the value of a row is stored. A number can stand for several values, whose hashes collide.
#[derive(Clone, Copy)]
struct StoredForm {
    row: RowRef,
    compressed: bool,
    len: u64,
}

/// Turns the rows of partitions into images. One for each thread.
pub(crate) struct Emitter<'a> {
    shape: Shape,
    compressor: Compressor<'a>,
    blobs: &'a SpillFile,
    /// Whether references keep the compressed form of their value.
    keep_frames: bool,
    /// How the shared values this thread met last are stored.
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

    /// Rows from other buffers come: what was noted of rows by their place no longer holds.
    pub(crate) fn forget_rows(&mut self) {
        self.stored_forms.clear();
    }

    /// Makes the image of one partition's rows. Their roles are alone if `roles` is empty; rows in
    /// `alone` store their value whatever their role.
    pub(crate) fn write(
        &mut self,
        image: &mut Image,
        buffers: Buffers<'_>,
        (refs, roles): (&[RowRef], &[Role]),
        alone: &HashSet<RowRef>,
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
                if let Some(&ahead) = refs.get(row as usize + AHEAD) {
                    buffers.prefetch(ahead);
                }
                let (at, role) = (refs[row as usize], roles.get(row as usize));
                let role = match role.copied().unwrap_or(Role::Alone) {
                    Role::Reference(_) if alone.contains(&at) => Role::Alone,
                    role => role,
                };
                self.plan(buffers, at, role, &mut planned)?;
            }
            Self::write_line(image, &planned, overflow);
            Ok(())
        })
    }

    #[inline]
    fn plan<'r>(
        &mut self,
        buffers: Buffers<'r>,
        at: RowRef,
        role: Role,
        planned: &mut Vec<Planned<'r>>,
    ) -> Result<()> {
        let row = buffers.row(at);
        let (from, compressed, stored_len) = match role {
            Role::Reference(number) => self.plan_reference(buffers, number, (at, &row))?,
            Role::Alone | Role::Source(_) => match self.compress(&row)? {
                Some(frame) => {
                    let len = frame.len();
                    (From::Compressed(frame.into()), true, len)
                }
                None => (From::Row, false, row.value_len),
            },
        };
        let plan = RecordPlan {
            value_type: row.value_type,
            compressed,
            shared: matches!(from, From::Reference(..)),
            key_len: row.key.len(),
            stored_len,
        };
        let source = if let Role::Source(number) = role { Some(number) } else { None };
        planned.push(Planned { at, row, plan, from, source });
        Ok(())
    }

    /// A reference tells how its value is stored elsewhere: as it would be here, since equal values
    /// compress alike.
    fn plan_reference(
        &mut self,
        buffers: Buffers<'_>,
        number: u64,
        (at, row): (RowRef, &Row<'_>),
    ) -> Result<(From, bool, u64)> {
        if !self.compressor.tries(row) {
            return Ok((From::Reference(number, None), false, row.value_len));
        }
        if let Some(&form) = self.stored_forms.get(&number)
            && !self.keep_frames
            && compare::same_value(row, &buffers.row(form.row), self.blobs)?
        {
            return Ok((From::Reference(number, None), form.compressed, form.len));
        }
        let frame = self.compress(row)?;
        let len = frame.as_ref().map_or(row.value_len, Frame::len);
        let compressed = frame.is_some();
        if !self.keep_frames {
            self.stored_forms.insert(number, StoredForm { row: at, compressed, len });
        }
        let kept = frame.filter(|_| self.keep_frames).map(Box::new);
        Ok((From::Reference(number, kept), compressed, len))
    }

    /// Compresses the row's value, if that pays.
    fn compress(&mut self, row: &Row<'_>) -> Result<Option<Frame>> {
        let Some(bytes) = self.compressor.compress(row)? else { return Ok(None) };
        if let Payload::Bytes(_) = row.payload {
            return Ok(Some(Frame::Memory(bytes)));
        }
        let (offset, len) = (self.blobs.append(&bytes)?, bytes.len() as u64);
        Ok(Some(Frame::Blob { offset, len }))
    }

    fn write_line(image: &mut Image, planned: &[Planned<'_>], overflow: u8) {
        // Offsets from the base are to tell whether values are aligned.
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

    #[inline]
    fn write_record(image: &mut Image, record: &Planned<'_>, shift: u8) {
        let Planned { at, row, plan, from, source } = record;
        let value_at = plan.value_at(image.data_len(), shift);
        plan.write_head(&mut image.data, shift);
        append(&mut image.data, row.key);
        image.pad_to(value_at);
        if let Some(number) = *source {
            let RecordPlan { value_type, compressed, stored_len, .. } = *plan;
            let (row, offset) = (*at, value_at);
            image.sources.push(Source { number, row, value_type, compressed, offset, stored_len });
        }
        match (from, row.payload) {
            (From::Reference(number, frame), _) => {
                let (number, row, frame) = (*number, *at, frame.clone());
                image.references.push(Reference { number, row, at: image.data.len(), frame });
                image.data.extend_from_slice(&[0; record::REFERENCE_LEN]);
            }
            (From::Row, Payload::Bytes(bytes)) => append(&mut image.data, bytes),
            (From::Row, Payload::Blob(blob)) => image.push_blob(blob.offset, row.value_len),
            (From::Compressed(frame), _) => match &**frame {
                Frame::Memory(bytes) => image.data.extend_from_slice(bytes),
                Frame::Blob { offset, len } => image.push_blob(*offset, *len),
            },
        }
        count(&mut image.totals, row, plan);
    }
}

/// Appends bytes. Those of most keys and values are few, and a call to copy them costs more than
/// the copy: two words do, the second over the end of the first.
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

fn count(totals: &mut Totals, row: &Row<'_>, plan: &RecordPlan) {
    totals.entries += 1;
    totals.key_bytes += row.key.len() as u64;
    totals.value_bytes += row.value_len;
    totals.stored_value_bytes += if plan.shared { 0 } else { plan.stored_len };
    totals.shared += u64::from(plan.shared);
    totals.compressed += u64::from(plan.compressed);
    totals.by_type[usize::from(row.value_type.code())] += 1;
}

/// The least shift with which the offsets of all these records fit 16 bits.
fn shift_of(planned: &[Planned<'_>]) -> u8 {
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
