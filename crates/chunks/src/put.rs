//! Putting chunks of objects.

use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::ranges::check_range;
use nuthatch_segments::{Outcome, Part, Reason, Record, checksum};
use std::ops::Range;

/// What became of the chunks of a put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// Chunks that are there now and were not before.
    pub stored: u64,
    /// Chunks that were there already.
    pub present: u64,
    /// Number of chunks, of any object, that the new chunks displaced from the index because it
    /// could not grow further. Evicted chunks do not count.
    pub displaced: u64,
    /// Why the others were not kept, if any were not: the disk is full, for instance. The caller
    /// has their bytes; a reader goes on with them.
    pub not_kept: Option<Reason>,
}

impl Chunks {
    /// Puts chunks that follow each other. `offsets` has where each of them begins in `data`, and
    /// where the last one ends. Stores what is not there; a chunk that is there with other bytes is
    /// an error.
    pub fn put(
        &self,
        key: &Key,
        range: Range<u64>,
        offsets: &[u64],
        data: &[u8],
    ) -> Result<Stored> {
        self.put_until(key, range, offsets, data, 0)
    }

    /// As [`Chunks::put`], for chunks that expire, in milliseconds since 1970; zero for never.
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
        let most = self.put_most();
        if data.len() as u64 > most {
            return Err(Error::TooLarge { len: data.len() as u64, most });
        }
        let most = self.chunk_most();
        if let Some(len) = offsets.windows(2).map(|pair| pair[1] - pair[0]).find(|len| *len > most)
        {
            return Err(Error::TooLarge { len, most });
        }
        let sums =
            offsets.windows(2).map(|pair| checksum(&data[pair[0] as usize..pair[1] as usize]));
        let put = Put { key, first: range.start, offsets, sums: sums.collect(), data, expiry };
        self.store(&put)
    }

    fn store(&self, put: &Put<'_>) -> Result<Stored> {
        let mut stored = Stored::default();
        let mut from = None;
        let count = put.sums.len();
        // What is there already is found first, so that a conflict stores nothing.
        let mut absent = Vec::new();
        for chunk in 0..count {
            let number = put.first + chunk as u64;
            let found = self.segments.find(&put.key.id(number), &put.key.label);
            match found.and_then(|found| found.sum_of(number).zip(Some(found.len_of(number)))) {
                Some(there) if there == (put.sums[chunk], put.len_of(chunk)) => {
                    stored.present += 1;
                    absent.extend(from.take().map(|from| from..chunk));
                }
                Some(_) => return Err(Error::Conflict { chunk: number }),
                None => from = from.or(Some(chunk)),
            }
        }
        absent.extend(from.map(|from| from..count));
        for run in absent {
            self.store_run(put, run, &mut stored)?;
        }
        Ok(stored)
    }

    /// Stores chunks that follow each other, in few records: a view of one is one slice. A record
    /// may be as long as a chunk may be, unless there is no such room at once.
    fn store_run(&self, put: &Put<'_>, run: Range<usize>, stored: &mut Stored) -> Result<()> {
        let label = put.key.label.len() as u64;
        let [mut most, usual] = [self.segments.part_most(), self.segments.segment_len()]
            .map(|most| most.saturating_sub(label + 4096));
        let mut start = run.start;
        while start < run.end && stored.not_kept.is_none() {
            let from = put.offsets[start];
            let mut end = start + 1;
            let fits = |end: usize| put.offsets[end + 1] - from + (end - start) as u64 * 16 <= most;
            while end < run.end && end - start < 1 << 16 && fits(end) {
                end += 1;
            }
            let ends = &put.offsets[start + 1..=end];
            let sums = &put.sums[start..end];
            let parts: Vec<_> = ends
                .iter()
                .zip(sums)
                .map(|(end, sum)| Part { end: end - from, sum: *sum })
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
                Outcome::Kept | Outcome::Met { other: None } => stored.stored += parts.len() as u64,
                Outcome::Displaced { parts: others } => {
                    stored.stored += parts.len() as u64;
                    stored.displaced += others;
                }
                Outcome::Met { other: Some(chunk) } => return Err(Error::Conflict { chunk }),
                Outcome::NotKept(Reason::NoRoom)
                    if parts.len() > 1 && record.data.len() as u64 > usual =>
                {
                    most = usual;
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
        return wrong(format!("{count} and one more"), format!("{}", offsets.len()));
    }
    if offsets[0] != 0 {
        return wrong("0 at first".into(), format!("{}", offsets[0]));
    }
    let mut pairs = offsets.iter().zip(&offsets[1..]);
    if let Some((start, end)) = pairs.find(|(start, end)| start >= end) {
        return wrong(format!("more than {start}"), format!("{end}"));
    }
    match offsets.last() {
        Some(last) if *last != len => wrong(format!("{len} at last"), format!("{last}")),
        _ => Ok(()),
    }
}
