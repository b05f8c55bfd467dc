//! Plans how to read a range: which blocks are in the cache, which ones other readers fetch, and
//! requests for the rest.

use crate::reading::fetch::{FetchHandle, found, start_fetch};
use crate::reading::file_task::FileTask;
use crate::reading::version::{CachedVersion, Version};
use bytes::Bytes;
use nuthatch_chunks::{Chunks, Flight, Waiter};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A range of at most a block, and where its bytes come from.
pub(crate) struct PlannedRange {
    pub(crate) range: Range<u64>,
    pub(crate) source: RangeSource,
}

pub(crate) enum RangeSource {
    /// The cache had it when the plan was made; reading it may have begun.
    Cached(Option<FileTask<Option<Bytes>>>),
    /// A request that this reader started.
    OwnFetch(Waiter, Arc<FetchHandle>),
    /// A request that another reader started, and since when this one waits for it.
    SharedFetch(Waiter, Instant),
    /// The bytes did not arrive.
    Missed,
}

/// Plans a range, and starts requests for blocks that are neither in the cache nor being fetched.
/// If the cache fails, all blocks are missing.
pub(crate) fn plan(
    version: &Arc<Version>,
    cached: &CachedVersion,
    chunks: &Chunks,
    range: &Range<u64>,
) -> Vec<PlannedRange> {
    let all = |range: &Range<u64>| in_blocks(range, cached.block_len, version.len()).collect();
    let gaps = |range| missing(version, cached, chunks, range).unwrap_or_else(|| all(range));
    let missing: Vec<_> = gaps(range);
    if missing.is_empty() {
        return pieces(range, cached.block_len, Vec::new());
    }
    let since = Instant::now();
    let mut fetches = chunks.single_flight(&cached.key, &missing);
    if !version.head.ranges && !fetches.flights.is_empty() {
        // The origin has no ranges and sends the whole object, so this fetches all missing blocks.
        let beyond = |gap: &Range<u64>| gap.start >= range.end || gap.end <= range.start;
        let rest: Vec<_> = gaps(&(0..version.len())).into_iter().filter(beyond).collect();
        let rest = chunks.single_flight(&cached.key, &rest).flights;
        for mine in &rest {
            version.note_prefetched(mine.range().start / cached.block_len);
        }
        fetches.flights.extend(rest);
        fetches.flights.sort_by_key(|mine| mine.range().start);
    }
    let mut requested: Vec<(Range<u64>, RangeSource)> = Vec::new();
    for flights in in_requests(version, fetches.flights, &fetches.waiters) {
        let waits: Vec<_> = flights.iter().map(|mine| (mine.range(), mine.waiter())).collect();
        let handle = start_fetch(version, flights);
        let mine = |(range, waiting)| (range, RangeSource::OwnFetch(waiting, handle.clone()));
        requested.extend(waits.into_iter().map(mine));
    }
    let theirs = |waiting: Waiter| (waiting.range(), RangeSource::SharedFetch(waiting, since));
    requested.extend(fetches.waiters.into_iter().map(theirs));
    requested.sort_by_key(|(range, _)| range.start);
    pieces(range, cached.block_len, requested)
}

/// Returns the ranges of the blocks that overlap `range`.
fn in_blocks(
    range: &Range<u64>,
    block_len: u64,
    len: u64,
) -> impl Iterator<Item = Range<u64>> + use<> {
    let first = range.start / block_len;
    let last = range.end.div_ceil(block_len);
    (first..last).map(move |block| block * block_len..((block + 1) * block_len).min(len))
}

/// Returns the missing blocks of a range, or `None` if the cache cannot be read.
fn missing(
    version: &Version,
    cached: &CachedVersion,
    chunks: &Chunks,
    range: &Range<u64>,
) -> Option<Vec<Range<u64>>> {
    let gaps = version.blocks(chunks, cached)?.missing(range.clone()).ok()?;
    let blocks = |gap: &Range<u64>| in_blocks(gap, cached.block_len, version.len());
    Some(gaps.iter().flat_map(blocks).collect())
}

/// Groups flights into requests. A request covers blocks with small gaps between them, up to its
/// maximum length, unless another reader fetches a block in a gap.
fn in_requests(version: &Version, mine: Vec<Flight>, theirs: &[Waiter]) -> Vec<Vec<Flight>> {
    let settings = &version.engine.settings;
    let mut requests: Vec<Vec<Flight>> = Vec::new();
    for flight in mine {
        let range = flight.range();
        let joins = |flights: &Vec<Flight>| {
            let (Some(first), Some(last)) = (flights.first(), flights.last()) else { return false };
            let gap = last.range().end..range.start;
            let taken = |waiting: &Waiter| {
                waiting.range().start >= gap.start && waiting.range().start < gap.end
            };
            !version.head.ranges
                || (gap.end - gap.start <= settings.max_gap
                    && range.end - first.range().start <= settings.max_request_len
                    && !theirs.iter().any(taken))
        };
        match requests.last_mut().filter(|flights| joins(flights)) {
            Some(flights) => flights.push(flight),
            None => requests.push(vec![flight]),
        }
    }
    requests
}

/// Returns the planned ranges: those that were requested, and between them blocks of the cache.
fn pieces(
    range: &Range<u64>,
    block_len: u64,
    requested: Vec<(Range<u64>, RangeSource)>,
) -> Vec<PlannedRange> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    let cached = |pieces: &mut Vec<PlannedRange>, until: u64, mut at: u64| {
        while at < until {
            let end = ((at / block_len + 1) * block_len).min(until);
            pieces.push(PlannedRange { range: at..end, source: RangeSource::Cached(None) });
            at = end;
        }
    };
    for (bytes, source) in requested {
        let (start, end) = (bytes.start.max(at), bytes.end.min(range.end));
        if start >= end {
            continue;
        }
        cached(&mut pieces, start, at);
        pieces.push(PlannedRange { range: start..end, source });
        at = end;
    }
    cached(&mut pieces, range.end, at);
    pieces
}

/// Reads a range from the cache, if it is still there.
pub(crate) fn read(
    version: &Version,
    cached: &CachedVersion,
    chunks: &Chunks,
    range: &Range<u64>,
) -> Option<Bytes> {
    let blocks = version.blocks(chunks, cached)?;
    found(blocks.get(range.clone())).map(Bytes::from)
}
