//! The cache: putting and getting chunks of objects.

use crate::error::{Error, Result};
use crate::fill::Fills;
use crate::key::Key;
use crate::plan::{Lengths, Lookup, Piece};
use crate::view::View;
use nuthatch_segments::{
    Options, Outcome, Part, Reason, Record, Segments, Unread, Warning, checksum,
};
use std::ops::Range;
use std::path::Path;

/// A cache of chunks in a folder. Shared by all threads of a process, as the folder is by
/// processes.
#[derive(Debug)]
pub struct Chunks {
    pub(crate) segments: Segments,
    pub(crate) fills: Fills,
}

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

/// Bytes of chunks that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The bytes.
    pub data: Vec<u8>,
    /// Where in them each chunk begins, and where the last one ends: one more than there are
    /// chunks.
    pub offsets: Vec<u64>,
}

impl Chunks {
    /// Opens a folder, and creates it if it is missing. If this process may not write to the
    /// folder, opens it read-only: chunks are found, and none are stored.
    ///
    /// # Errors
    /// Fails if the folder cannot be opened, if an option is out of range, or if an option would
    /// change a setting of a folder that can only be read.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let segments = Segments::open(path, options)?;
        Ok(Self { segments, fills: Fills::default() })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.segments.path()
    }

    /// Returns whether this process can only read the folder now. What is there is found then, and
    /// each put is refused and counted, until the folder can be written again.
    pub fn read_only(&self) -> bool {
        self.segments.read_only()
    }

    /// Returns what is not as it should be with the folder now. Each is worth one line of a log.
    pub fn warnings(&self) -> Vec<Warning> {
        self.segments.warnings()
    }

    /// Returns whether the folder was removed since it was opened. Opening it again creates it.
    pub fn is_removed(&self) -> bool {
        self.segments.is_removed()
    }

    /// Returns the options that the folder was opened with.
    pub fn options(&self) -> &Options {
        self.segments.options()
    }

    /// Returns options that make the folder again as it is now, after it was removed: those that it
    /// was opened with, with the limits and the sharing that it has.
    pub fn options_to_make_again(&self) -> Options {
        self.segments.options_to_make_again()
    }

    /// Returns the limit of the folder, which any process can change. `None` while another process
    /// makes the index again.
    pub fn limit(&self) -> Option<u64> {
        self.segments.limit()
    }

    /// How many bytes one put may have: half the limit.
    pub fn put_most(&self) -> u64 {
        self.segments.part_most() * 4
    }

    /// How many bytes one chunk may have.
    pub fn chunk_most(&self) -> u64 {
        self.segments.part_most()
    }

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

    /// Reads chunks into a buffer of their own.
    pub fn get(&self, key: &Key, range: Range<u64>) -> Result<Lookup<Read>> {
        check_range(&range, u64::MAX)?;
        Ok(self.with_plan(key, &range, Lengths::Any, |pieces| {
            let len: u64 = pieces.iter().map(Piece::len).sum();
            let mut data = vec![0; len as usize];
            read_pieces(pieces, 0, &mut data)?;
            Ok(Read { data, offsets: offsets_of(pieces) })
        }))
    }

    /// Reads chunks into the beginning of a buffer. Answers where each of them begins there, and
    /// where the last one ends.
    pub fn get_into(
        &self,
        key: &Key,
        range: Range<u64>,
        out: &mut [u8],
    ) -> Result<Lookup<Vec<u64>>> {
        check_range(&range, u64::MAX)?;
        let mut short = None;
        let read = self.with_plan(key, &range, Lengths::Any, |pieces| {
            let len: u64 = pieces.iter().map(Piece::len).sum();
            match out.get_mut(..len as usize) {
                Some(out) => read_pieces(pieces, 0, out)?,
                None => short = Some(len),
            }
            Ok(offsets_of(pieces))
        });
        match short {
            Some(expected) => Err(Error::Buffer { expected, found: out.len() as u64 }),
            None => Ok(read),
        }
    }

    /// Lends chunks from where they lie.
    pub fn view(&self, key: &Key, range: Range<u64>) -> Result<Lookup<View>> {
        check_range(&range, u64::MAX)?;
        Ok(self.with_plan(key, &range, Lengths::Any, |pieces| {
            let len = pieces.iter().map(Piece::len).sum();
            View::new(pieces, 0..len)
        }))
    }

    /// Which chunks of a range are missing, without reading any.
    pub fn missing(&self, key: &Key, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        check_range(&range, u64::MAX)?;
        Ok(self.plan(key, range, Lengths::Any).missing().to_vec())
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

/// Copies bytes of pieces, without so many at the beginning, until the buffer is full.
pub(crate) fn read_pieces(
    pieces: &[Piece<'_>],
    skip: u64,
    out: &mut [u8],
) -> std::result::Result<(), Unread> {
    let mut rest = out;
    let mut skip = skip;
    for piece in pieces {
        let bytes = piece.bytes();
        let len = (bytes.end - bytes.start - skip).min(rest.len() as u64);
        let (here, later) = rest.split_at_mut(len as usize);
        piece.found.read(bytes.start + skip, here)?;
        rest = later;
        skip = 0;
    }
    Ok(())
}

fn offsets_of(pieces: &[Piece<'_>]) -> Vec<u64> {
    let mut offsets = vec![0];
    let mut end = 0;
    for piece in pieces {
        for chunk in piece.chunks.clone() {
            end += piece.found.len_of(chunk);
            offsets.push(end);
        }
    }
    offsets
}

pub(crate) fn check_range(range: &Range<u64>, most: u64) -> Result<()> {
    if range.start >= range.end || range.end > most {
        return Err(Error::Range { start: range.start, end: range.end, most });
    }
    Ok(())
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
