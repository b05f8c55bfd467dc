//! Reads records: locating, reading and parsing are separate steps.

use crate::batch::seed;
use crate::buffer::AlignedBuffer;
use crate::checksum::checksum;
use crate::directory::{Directory, padded_len};
use crate::error::Damage;
use crate::items::ItemFile;
use crate::layout::{BLOCK, entry};
use crate::place::Place;
use crate::record::{ParseError, Record};
use crate::record_id::RecordId;
use crate::scan::{AtDamage, Scanned, rebuild, scan};
use crate::shared::Shared;
use std::fmt;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Reads the records of a tier. Clones are cheap, and each thread has its own.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

/// Why a record is not returned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The item file was removed, or the record is not written yet.
    Missing,
    /// The record at the place has another key.
    OtherKey,
    /// The record is longer than the bytes that were read. Only if the place did not say how many
    /// blocks it has: see [`ReadPlan::extended`].
    Short {
        /// Bytes that the plan must have.
        needed: usize,
    },
    /// The record is damaged, or the system cannot read it.
    Damaged(Damage),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the item file was removed, or the record not written"),
            Self::OtherKey => f.write_str("the record has another key"),
            Self::Short { needed } => write!(f, "the record needs {needed} bytes"),
            Self::Damaged(damage) => damage.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

/// A planned read: `len` bytes at `offset` of a file, which are then parsed. The file stays open as
/// long as the plan exists, even if the tier removes it.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    items: Arc<ItemFile>,
    place: Place,
    offset: u64,
    len: usize,
}

impl AsFd for ReadPlan {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.items.file.as_fd()
    }
}

impl ReadPlan {
    /// Returns the file to read from.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.items.file
    }

    /// Returns the offset to read from, a multiple of 4 KiB.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes to read, a multiple of 4 KiB. With direct I/O, the memory must
    /// begin at a multiple of 4 KiB: see [`AlignedBuffer`].
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the place of the record.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the id of the record.
    #[must_use]
    pub fn id(&self) -> RecordId {
        RecordId { file: self.items.number, unit: self.place.unit }
    }

    /// Returns the error for a read that the system refused, or that had other bytes than expected.
    #[must_use]
    pub fn failure(&self, reason: &str) -> ReadError {
        ReadError::Damaged(Damage::new(&self.items.name, self.offset, reason))
    }

    /// Returns the plan to read `needed` bytes, after [`ReadError::Short`].
    #[must_use]
    pub fn extended(mut self, needed: usize) -> Self {
        self.len = needed.next_multiple_of(BLOCK);
        self.place.blocks = (self.len / BLOCK) as u32;
        self
    }

    /// Parses the bytes of this plan: checks the checksum and compares the key.
    ///
    /// # Errors
    ///
    /// Returns why the bytes are not the record with this key.
    pub fn parse<'b>(&self, bytes: &'b [u8], key: &[u8]) -> Result<Record<'b>, ReadError> {
        let record = self.parse_any(bytes)?;
        if record.key == key { Ok(record) } else { Err(ReadError::OtherKey) }
    }

    /// Parses the bytes of this plan, and accepts any key.
    ///
    /// # Errors
    ///
    /// Returns why the bytes are not a record.
    pub fn parse_any<'b>(&self, bytes: &'b [u8]) -> Result<Record<'b>, ReadError> {
        let record_at = self.place.offset();
        let start = (record_at - self.offset) as usize;
        let record_bytes = bytes.get(start..).unwrap_or_default();
        let damaged =
            |reason| Err(ReadError::Damaged(Damage::new(&self.items.name, record_at, reason)));
        match Record::decode(record_bytes, seed(self.items.salt, record_at)) {
            Ok(record) => Ok(record),
            Err(ParseError::Damaged(reason)) => damaged(reason),
            Err(ParseError::Short { needed }) => {
                let is_in_file = record_at + needed as u64 <= self.items.data_end();
                if self.place.blocks == 0 && is_in_file && bytes.len() >= self.len {
                    return Err(ReadError::Short { needed: start + needed });
                }
                damaged("expected a record, found one that is longer than its place")
            }
        }
    }
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns the read for the record at a place, or `None` if its file was removed or the record
    /// is not written yet. Does not read anything. A place that does not say how many blocks it has
    /// gives a plan for as many as most records in its file have.
    #[must_use]
    pub fn read_plan(&self, place: Place) -> Option<ReadPlan> {
        let items = self.shared.files.in_slot(place.slot)?;
        let offset = place.offset() / BLOCK as u64 * BLOCK as u64;
        let available = items.data_end().saturating_sub(offset);
        let len = match place.blocks {
            0 => items.typical_len().min(available.max(BLOCK as u64)),
            blocks => u64::from(blocks) * BLOCK as u64,
        };
        let is_written = offset >= BLOCK as u64 && len <= available;
        is_written.then_some(ReadPlan { items, place, offset, len: len as usize })
    }

    /// Returns the plans to read the records at these places of one item file together: the bytes
    /// that are [filled](Self::fill) for one of them are those of all. The places are in ascending
    /// order and have numbers of blocks. Returns `None` if the file was removed, or if a record is
    /// not written yet.
    #[must_use]
    pub fn read_plans(&self, places: &[Place]) -> Option<Vec<ReadPlan>> {
        let first = self.read_plan(*places.first()?)?;
        let last = self.read_plan(*places.last()?)?;
        let len = (last.offset + last.len as u64).checked_sub(first.offset)? as usize;
        let plan = |place: &Place| ReadPlan { place: *place, len, ..first.clone() };
        (first.items.number == last.items.number).then(|| places.iter().map(plan).collect())
    }

    /// Returns the id of the record at a place, or `None` if its file was removed. The place must
    /// not be older than the removal of another file in its slot.
    #[must_use]
    pub fn record_id(&self, place: Place) -> Option<RecordId> {
        let items = self.shared.files.in_slot(place.slot)?;
        Some(RecordId { file: items.number, unit: place.unit })
    }

    /// Returns the place of a record that has `blocks` blocks (0 if that is unknown), or `None` if
    /// its file was removed.
    #[must_use]
    pub fn place(&self, id: RecordId, blocks: u32) -> Option<Place> {
        let items = self.shared.files.with_number(id.file)?;
        Some(Place { slot: items.slot, unit: id.unit, blocks })
    }

    /// Reads the record at a place with `pread`. The record borrows `buffer`, which is enlarged if
    /// necessary.
    ///
    /// # Errors
    ///
    /// Returns why the record with this key cannot be read, never [`ReadError::Short`].
    pub fn read<'b>(
        &self,
        place: Place,
        key: &[u8],
        buffer: &'b mut AlignedBuffer,
    ) -> Result<Record<'b>, ReadError> {
        let mut plan = self.read_plan(place).ok_or(ReadError::Missing)?;
        self.fill(&plan, buffer)?;
        if let Err(ReadError::Short { needed }) = plan.parse_any(&buffer.as_slice()[..plan.len]) {
            plan = plan.extended(needed);
            self.fill(&plan, buffer)?;
        }
        plan.parse(&buffer.as_slice()[..plan.len], key)
    }

    /// Returns the bytes of all files in the folder: see [`Tier::used_bytes`](crate::Tier).
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.shared.budget.used()
    }

    /// Returns the maximum of these bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.shared.budget.max_bytes()
    }

    /// Reads the bytes of a plan with `pread`. The buffer is enlarged if necessary.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError::Damaged`] if the system refuses, or the file ends before.
    pub fn fill(&self, plan: &ReadPlan, buffer: &mut AlignedBuffer) -> Result<(), ReadError> {
        buffer.reserve(plan.len);
        let bytes = &mut buffer.as_mut_slice()[..plan.len];
        let items = &plan.items;
        let read = self.shared.disk().read(&items.file, &items.name, bytes, plan.offset);
        let reason = match read {
            Ok(read) if read == plan.len => return Ok(()),
            Ok(read) => format!("expected {} bytes, found {read}", plan.len),
            Err(error) => format!("cannot be read: {error}"),
        };
        Err(plan.failure(&reason))
    }

    /// Returns the numbers of all item files, the oldest first.
    #[must_use]
    pub fn numbers(&self) -> Vec<u64> {
        self.shared.files.all().iter().map(|items| items.number).collect()
    }

    /// Returns the directory of an item file. It is read if the file is sealed; otherwise, or if it
    /// is damaged, it is rebuilt from the records. Returns `None` if the file was removed.
    #[must_use]
    pub fn directory(&self, number: u64) -> Option<(Directory, Vec<Damage>)> {
        let items = self.shared.files.with_number(number)?;
        Some(directory_of(&items, self.shared.disk()))
    }

    /// Reads all records of an item file in the order in which they were written, until `visit`
    /// returns [`ControlFlow::Break`]. Removed records are included: see
    /// [`Recovery::removed`](crate::Recovery::removed). Batches that are damaged are left out. A
    /// batch is read into memory at once, which is as long as the longest record.
    pub fn records(
        &self,
        number: u64,
        visit: impl FnMut(Place, &Record<'_>) -> ControlFlow<()>,
    ) -> Loaded {
        let Some(items) = self.shared.files.with_number(number) else { return Loaded::default() };
        let (end, disk) = (items.data_end(), self.shared.disk());
        let Scanned { records, damage, .. } = scan(&items, disk, end, AtDamage::Continue, visit);
        Loaded { records, damage }
    }

    /// Reads the records of all item files, the oldest first, until `visit` returns
    /// [`ControlFlow::Break`]. Removed records are included, as in [`Reader::records`].
    pub fn all_records(
        &self,
        mut visit: impl FnMut(Place, &Record<'_>) -> ControlFlow<()>,
    ) -> Loaded {
        let mut all = Loaded::default();
        let mut has_ended = false;
        for number in self.numbers() {
            let loaded = self.records(number, |place, record| {
                let flow = visit(place, record);
                has_ended = flow.is_break();
                flow
            });
            all.records += loaded.records;
            all.damage.extend(loaded.damage);
            if has_ended {
                break;
            }
        }
        all
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("folder", &self.shared.folder.path()).finish()
    }
}

/// The records that were read from item files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The number of records.
    pub records: u64,
    /// What could not be read.
    pub damage: Vec<Damage>,
}

/// Reads the directory of a file, or rebuilds it.
pub(crate) fn directory_of(
    items: &ItemFile,
    disk: &dyn crate::disk::Disk,
) -> (Directory, Vec<Damage>) {
    let (slot, created_ms, data_end) = (items.slot, items.created_ms, items.data_end());
    let mut damage = Vec::new();
    match stored_directory(items, disk) {
        Some(Ok(bytes)) => return (Directory { slot, created_ms, data_end, bytes }, damage),
        Some(Err(found)) => damage.push(found),
        None => {}
    }
    let (contents, scanned) = rebuild(items, disk, data_end, AtDamage::Continue);
    damage.extend(scanned.damage);
    (Directory { slot, created_ms, data_end, bytes: contents.entries }, damage)
}

/// Reads the directory of a sealed file. Returns `None` if the file is not sealed.
pub(crate) fn stored_directory(
    items: &ItemFile,
    disk: &dyn crate::disk::Disk,
) -> Option<Result<Vec<u8>, Damage>> {
    let footer = items.footer.get()?;
    let damaged = |reason: String| Err(Damage::new(&items.name, footer.directory, reason));
    let len = padded_len(footer.records) as usize;
    let mut buffer = AlignedBuffer::new(len);
    let read = disk.read(&items.file, &items.name, buffer.as_mut_slice(), footer.directory);
    Some(match read {
        Ok(read) if read == len => {
            if checksum(buffer.as_slice(), items.salt) == footer.directory_check {
                Ok(buffer.as_slice()[..footer.records as usize * entry::LEN].to_vec())
            } else {
                damaged("expected a directory, found another checksum".to_owned())
            }
        }
        Ok(read) => damaged(format!("expected {len} bytes, found {read}")),
        Err(error) => damaged(format!("cannot be read: {error}")),
    })
}
