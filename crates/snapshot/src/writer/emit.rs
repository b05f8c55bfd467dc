//! One partition as bytes: its lines of the index, and its records.

use super::place::Placement;
use super::plan::Shape;
use super::row::{Blob, Payload, Row};
use super::rows::Buffers;
use super::share::{Role, Shared};
use super::batch::RowRef;
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
    pub(crate) blob: Blob,
    pub(crate) len: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) number: u32,
    pub(crate) row: RowRef,
    pub(crate) value_type: ValueType,
    /// Offset of the stored value.
    pub(crate) offset: u64,
    pub(crate) stored_len: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) number: u32,
    pub(crate) row: RowRef,
    /// Where in `data` the six bytes are.
    pub(crate) at: usize,
    /// The value as it would be stored, where that is needed to compare it and is not the row's.
    pub(crate) frame: Option<Vec<u8>>,
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

    #[inline]
    fn pad_to(&mut self, at: u64) {
        let pad = (at - self.data_len()) as usize;
        self.data.extend_from_slice(&[0; 64][..pad.min(64)]);
        if pad > 64 {
            self.data.resize(self.data.len() + pad - 64, 0);
        }
    }
}

/// Where the bytes of a planned record's value come from.
enum From {
    Row,
    Compressed(std::ops::Range<usize>),
    /// The number of the shared value, and the frame to keep.
    Reference(u32, Option<Vec<u8>>),
}

struct Planned<'a> {
    at: RowRef,
    row: Row<'a>,
    plan: RecordPlan,
    from: From,
    source: Option<u32>,
}

/// Turns the rows of partitions into images. One for each thread.
pub(crate) struct Emitter<'a> {
    shape: Shape,
    shared: &'a Shared,
    compressor: Compressor<'a>,
    /// Whether references keep the compressed form of their value.
    keep_frames: bool,
    /// How the shared values this thread met are stored: whether compressed, and how long.
    stored_forms: HashMap<u32, (bool, u64)>,
    /// Compressed values of the line being written.
    compressed: Vec<u8>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        shape: Shape,
        shared: &'a Shared,
        compressor: Compressor<'a>,
        keep_frames: bool,
    ) -> Self {
        let (stored_forms, compressed) = (HashMap::new(), Vec::new());
        Self { shape, shared, compressor, keep_frames, stored_forms, compressed }
    }

    /// The image of one partition's rows. Those in `alone` store their value themselves.
    pub(crate) fn image(
        &mut self,
        buffers: Buffers<'_>,
        refs: &[RowRef],
        alone: &HashSet<RowRef>,
    ) -> Result<Image> {
        let placement = Placement::of(refs, self.shape)?;
        let mut image = Image::default();
        image.lines.reserve_exact(self.shape.lines_per_partition as usize * line_at::LEN);
        image.data.reserve(refs.len() * 32);
        image.totals.max_probe = placement.max_probe;
        let mut planned = Vec::with_capacity(line_at::SLOTS);
        placement.for_each_line(|rows, overflow| {
            planned.clear();
            self.compressed.clear();
            for &row in rows {
                if let Some(&ahead) = refs.get(row as usize + AHEAD) {
                    buffers.prefetch(ahead);
                }
                planned.push(self.plan(buffers, refs[row as usize], alone)?);
            }
            self.write_line(&mut image, &planned, overflow);
            Ok(())
        })?;
        Ok(image)
    }

    fn plan<'r>(
        &mut self,
        buffers: Buffers<'r>,
        at: RowRef,
        alone: &HashSet<RowRef>,
    ) -> Result<Planned<'r>> {
        let row = buffers.row(at);
        let role = match self.shared.role(&row) {
            Role::Reference(_) if alone.contains(&at) => Role::Alone,
            role => role,
        };
        let (from, compressed, stored_len) = match role {
            Role::Reference(number) => self.plan_reference(number, &row)?,
            Role::Alone | Role::Source(_) => match self.compress(&row)? {
                Some(frame) => (From::Compressed(frame.clone()), true, frame.len() as u64),
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
        Ok(Planned { at, row, plan, from, source })
    }

    /// A reference tells how its value is stored elsewhere: as it would be here, since equal values
    /// compress alike.
    fn plan_reference(&mut self, number: u32, row: &Row<'_>) -> Result<(From, bool, u64)> {
        if let Some(&(compressed, len)) = self.stored_forms.get(&number)
            && !self.keep_frames
        {
            return Ok((From::Reference(number, None), compressed, len));
        }
        let frame = self.compress(row)?;
        let len = frame.as_ref().map_or(row.value_len, |frame| frame.len() as u64);
        self.stored_forms.insert(number, (frame.is_some(), len));
        let compressed = frame.is_some();
        let kept = frame.filter(|_| self.keep_frames).map(|range| self.compressed[range].to_vec());
        Ok((From::Reference(number, kept), compressed, len))
    }

    /// Compresses the row's value into the buffer of this line, if that pays.
    fn compress(&mut self, row: &Row<'_>) -> Result<Option<std::ops::Range<usize>>> {
        let start = self.compressed.len();
        let compressed = self.compressor.compress(row, &mut self.compressed)?;
        Ok(compressed.then(|| start..self.compressed.len()))
    }

    fn write_line(&self, image: &mut Image, planned: &[Planned<'_>], overflow: u8) {
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
            for (field, number) in
                [(line_at::FINGERPRINTS, fingerprint), (line_at::OFFSETS, units)]
            {
                let at = field + 2 * slot;
                line[at..at + 2].copy_from_slice(&number.to_le_bytes());
            }
            self.write_record(image, record, shift);
        }
        line[line_at::SHIFT] = shift;
        line[line_at::OVERFLOW] = overflow;
        line[line_at::BASE..].copy_from_slice(&base.to_le_bytes()[..6]);
        image.lines.extend_from_slice(&line);
    }

    #[inline]
    fn write_record(&self, image: &mut Image, record: &Planned<'_>, shift: u8) {
        let Planned { at, row, plan, from, source } = record;
        let value_at = plan.value_at(image.data_len(), shift);
        plan.write_head(&mut image.data, shift);
        image.data.extend_from_slice(row.key);
        image.pad_to(value_at);
        if let Some(number) = *source {
            let (value_type, stored_len) = (plan.value_type, plan.stored_len);
            let offset = value_at;
            image.sources.push(Source { number, row: *at, value_type, offset, stored_len });
        }
        match (from, row.payload) {
            (From::Reference(number, frame), _) => {
                let (number, row, frame) = (*number, *at, frame.clone());
                image.references.push(Reference { number, row, at: image.data.len(), frame });
                image.data.extend_from_slice(&[0; record::REFERENCE_LEN]);
            }
            (From::Compressed(frame), _) => {
                image.data.extend_from_slice(&self.compressed[frame.clone()]);
            }
            (From::Row, Payload::Bytes(bytes)) => image.data.extend_from_slice(bytes),
            (From::Row, Payload::Blob(blob)) => {
                let (before, len) = (image.data.len(), row.value_len);
                image.blobs.push(BlobPiece { before, blob, len });
                image.blob_bytes += len;
            }
        }
        count(&mut image.totals, row, plan);
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
