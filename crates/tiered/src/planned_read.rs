//! A read of a record: which bytes to read, and what they contain.

use crate::promote::ReadRecord;
use nuthatch_cache::OnDisk;
use nuthatch_tier::{Place, ReadError, ReadPlan, Reader};
use std::os::fd::{AsFd, BorrowedFd};

/// A planned read of the record of an item: see [`TieredCache::begin_read`]. The file stays open as
/// long as this exists.
///
/// [`TieredCache::begin_read`]: crate::TieredCache::begin_read
#[derive(Debug)]
pub struct PlannedRead {
    pub(crate) on_disk: OnDisk,
    pub(crate) plan: ReadPlan,
    /// Bytes that were read before, as the record turned out to be longer than them.
    bytes_before: usize,
}

/// What the bytes of a read are.
pub(crate) enum Parsed<'b> {
    /// The begin of a record, which needs this longer read.
    Begin(PlannedRead),
    /// A record, or why they are none.
    Ended(Result<ReadRecord<'b>, ReadError>),
}

impl PlannedRead {
    /// Plans the read of an item. `None` if its file was removed.
    pub(crate) fn new(reader: &Reader, on_disk: OnDisk) -> Option<Self> {
        let plan = reader.read_plan(Place::unpack(on_disk.place(), 0))?;
        Some(Self { on_disk, plan, bytes_before: 0 })
    }

    /// Returns the file to read from.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.plan.as_fd()
    }

    /// Returns the offset to read from, a multiple of 4 KiB.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.plan.offset()
    }

    /// Returns the number of bytes to read, a multiple of 4 KiB. The memory must begin at a
    /// multiple of 4 KiB.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.plan.len()
    }

    /// Parses the bytes that were read.
    pub(crate) fn parse(self, bytes: Result<&[u8], ReadError>) -> Parsed<'_> {
        let Self { on_disk, plan, bytes_before } = self;
        let bytes_read = bytes_before + plan.len();
        match bytes.and_then(|bytes| plan.parse_any(bytes)) {
            Err(ReadError::Short { needed }) => {
                let plan = plan.extended(needed);
                Parsed::Begin(Self { on_disk, plan, bytes_before: bytes_read })
            }
            parsed => Parsed::Ended(parsed.map(|record| (record, plan.id(), bytes_read))),
        }
    }
}
