//! Storing chunks.

use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::ranges::check_range;
use nuthatch_segments::{NotKeptReason, Outcome, Part, Record, checksum};
use std::ops::Range;

/// The result of a put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// Chunks that this put stored.
    pub stored: u64,
    /// Chunks that were stored already.
    pub present: u64,
    /// Number of chunks, of any object, that the new chunks displaced from the index because it
    /// could not grow further. Evicted chunks do not count.
    pub displaced: u64,
    /// Why the remaining chunks were not kept, for example because the disk is full. `None` if all
    /// chunks are in the cache. The caller still has the bytes.
    pub not_kept: Option<NotKeptReason>,
}

impl Chunks {
    /// Stores consecutive chunks. `offsets` has the beginning of each chunk in `data`, and the end
    /// of the last one. Chunks that are stored already are kept.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Conflict`] if a chunk is stored with other bytes, [`Error::Range`],
    /// [`Error::Offsets`] or [`Error::TooLarge`] for arguments out of range, and [`Error::Folder`]
    /// if the record cannot be stored because of its lengths.
    pub fn put(
        &self,
        key: &Key,
        range: Range<u64>,
        offsets: &[u64],
        data: &[u8],
    ) -> Result<Stored> {
        self.put_until(key, range, offsets, data, 0)
    }

    /// Does the same as [`Chunks::put`] for chunks that expire at `expiry`, in milliseconds since
    /// 1970; zero for never.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Chunks::put`].
    pub fn put_until(
        &self,
        key: &Key,
        range: Range<u64>,
        offsets: &[u64],
        data: &[u8],
        expiry: u64,
    ) -> Result<Stored> {
        check_range(&range, u64::MAX)?;
        check_offsets(&range, offsets, data.len() as u64)?;
        let max = self.max_put_len();
        if data.len() as u64 > max {
            return Err(Error::TooLarge { len: data.len() as u64, max });
        }
        let max = self.max_chunk_len();
        if let Some(len) = offsets.windows(2).map(|pair| pair[1] - pair[0]).find(|len| *len > max) {
            return Err(Error::TooLarge { len, max });
        }
        let sums =
            offsets.windows(2).map(|pair| checksum(&data[pair[0] as usize..pair[1] as usize]));
        let put = Put { key, first: range.start, offsets, sums: sums.collect(), data, expiry };
        self.store(&put)
    }

    /// Stores the chunks of a put that are not stored yet.
    fn store(&self, put: &Put<'_>) -> Result<Stored> {
        let mut stored = Stored::default();
        let mut from = None;
        let count = put.sums.len();
        // Finds stored chunks first, so that a conflict stores nothing.
        let mut missing = Vec::new();
        for chunk in 0..count {
            let number = put.first + chunk as u64;
            let found = self.segments.find(&put.key.id(number), &put.key.label);
            match found
                .and_then(|found| found.part_checksum(number).zip(Some(found.part_len(number))))
            {
                Some(found) if found == (put.sums[chunk], put.len_of(chunk)) => {
                    stored.present += 1;
                    missing.extend(from.take().map(|from| from..chunk));
                }
                Some(_) => return Err(Error::Conflict { chunk: number }),
                None => from = from.or(Some(chunk)),
            }
        }
        missing.extend(from.map(|from| from..count));
        for run in missing {
            self.store_run(put, run, &mut stored)?;
        }
        Ok(stored)
    }

    /// Stores consecutive chunks in few records, since a view has one slice for each record. A
    /// record may be as long as a chunk, unless there is not enough space for it.
    fn store_run(&self, put: &Put<'_>, run: Range<usize>, stored: &mut Stored) -> Result<()> {
        let label = put.key.label.len() as u64;
        let [mut max, segment_len] = [self.segments.max_part_len(), self.segments.segment_len()]
            .map(|max| max.saturating_sub(label + 4096));
        let mut start = run.start;
        while start < run.end && stored.not_kept.is_none() {
            let from = put.offsets[start];
            let mut end = start + 1;
            let fits = |end: usize| put.offsets[end + 1] - from + (end - start) as u64 * 16 <= max;
            while end < run.end && end - start < 1 << 16 && fits(end) {
                end += 1;
            }
            let ends = &put.offsets[start + 1..=end];
            let sums = &put.sums[start..end];
            let parts: Vec<_> = ends
                .iter()
                .zip(sums)
                .map(|(end, sum)| Part { end: end - from, checksum: *sum })
                .collect();
            let record = Record {
                name: put.key.name,
                first: put.first + start as u64,
                label: &put.key.label,
                expiry: put.expiry,
                parts: &parts,
                data: &put.data[from as usize..put.offsets[end] as usize],
            };
            match self.segments.put(&record)? {
                Outcome::Kept | Outcome::Duplicate { conflict: None } => {
                    stored.stored += parts.len() as u64;
                }
                Outcome::Displaced { parts: displaced } => {
                    stored.stored += parts.len() as u64;
                    stored.displaced += displaced;
                }
                Outcome::Duplicate { conflict: Some(chunk) } => {
                    return Err(Error::Conflict { chunk });
                }
                Outcome::NotKept(NotKeptReason::NoRoom)
                    if parts.len() > 1 && record.data.len() as u64 > segment_len =>
                {
                    max = segment_len;
                    continue;
                }
                Outcome::NotKept(reason) => stored.not_kept = Some(reason),
            }
            start = end;
        }
        Ok(())
    }
}

/// Chunks to be stored.
struct Put<'a> {
    key: &'a Key,
    first: u64,
    offsets: &'a [u64],
    sums: Vec<u64>,
    data: &'a [u8],
    expiry: u64,
}

impl Put<'_> {
    fn len_of(&self, chunk: usize) -> u64 {
        self.offsets[chunk + 1] - self.offsets[chunk]
    }
}

fn check_offsets(range: &Range<u64>, offsets: &[u64], len: u64) -> Result<()> {
    let wrong = |expected: String, found: String| Err(Error::Offsets { expected, found });
    let count = range.end - range.start;
    if offsets.len() as u64 != count.saturating_add(1) {
        return wrong(format!("{count} + 1 offsets"), format!("{}", offsets.len()));
    }
    if offsets[0] != 0 {
        return wrong("0 as the first offset".into(), format!("{}", offsets[0]));
    }
    let mut pairs = offsets.iter().zip(&offsets[1..]);
    if let Some((start, end)) = pairs.find(|(start, end)| start >= end) {
        return wrong(format!("an offset greater than {start}"), format!("{end}"));
    }
    match offsets.last() {
        Some(last) if *last != len => wrong(format!("{len} as the last offset"), format!("{last}")),
        _ => Ok(()),
    }
}
