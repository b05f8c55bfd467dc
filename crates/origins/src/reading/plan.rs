//! Which bytes are in the cache, which others are fetching, and requests for the rest.

use crate::reading::fetch::{Share, found, request};
use crate::reading::file_task::Work;
use crate::reading::version::{Kept, Version};
use bytes::Bytes;
use nuthatch_chunks::{Chunks, Flight, Waiter};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A piece of an object, and where it comes from.
pub(crate) struct Piece {
    pub(crate) range: Range<u64>,
    pub(crate) source: Source,
}

pub(crate) enum Source {
    /// The cache had it a moment ago; reading it may have begun.
    Cached(Option<Work<Option<Bytes>>>),
    /// A request of ours.
    Mine(Waiter, Arc<Share>),
    /// A request of others, which we wait for since then.
    Theirs(Waiter, Instant),
    /// It did not come.
    Missed,
}

/// Divides a range into pieces, and has requested what nobody has. A cache that fails has nothing.
pub(crate) fn plan(
    version: &Arc<Version>,
    kept: &Kept,
    chunks: &Chunks,
    range: &Range<u64>,
) -> Vec<Piece> {
    let all = |range: &Range<u64>| in_blocks(range, kept.block_len, version.len()).collect();
    let gaps = |range| missing(version, kept, chunks, range).unwrap_or_else(|| all(range));
    let missing: Vec<_> = gaps(range);
    if missing.is_empty() {
        return pieces(range, kept.block_len, Vec::new());
    }
    let since = Instant::now();
    let mut fetches = chunks.single_flight(&kept.key, &missing);
    if !version.head.ranges && !fetches.flights.is_empty() {
        // One request brings everything, so all that is missing is claimed with it.
        let beyond = |gap: &Range<u64>| gap.start >= range.end || gap.end <= range.start;
        let rest: Vec<_> = gaps(&(0..version.len())).into_iter().filter(beyond).collect();
        let rest = chunks.single_flight(&kept.key, &rest).flights;
        for mine in &rest {
            version.fetched_ahead(mine.range().start / kept.block_len);
        }
        fetches.flights.extend(rest);
        fetches.flights.sort_by_key(|mine| mine.range().start);
    }
    let mut requested: Vec<(Range<u64>, Source)> = Vec::new();
    for tickets in in_requests(version, fetches.flights, &fetches.waiters) {
        let waits: Vec<_> = tickets.iter().map(|mine| (mine.range(), mine.waiter())).collect();
        let share = request(version, tickets);
        let mine = |(range, waiting)| (range, Source::Mine(waiting, share.clone()));
        requested.extend(waits.into_iter().map(mine));
    }
    let theirs = |waiting: Waiter| (waiting.range(), Source::Theirs(waiting, since));
    requested.extend(fetches.waiters.into_iter().map(theirs));
    requested.sort_by_key(|(range, _)| range.start);
    pieces(range, kept.block_len, requested)
}

/// The blocks of a range, as bytes of the object.
fn in_blocks(
    range: &Range<u64>,
    block_len: u64,
    len: u64,
) -> impl Iterator<Item = Range<u64>> + use<> {
    let first = range.start / block_len;
    let last = range.end.div_ceil(block_len);
    (first..last).map(move |block| block * block_len..((block + 1) * block_len).min(len))
}

/// What is missing of a range, block by block, so that each can be waited for. `None` if the cache
/// cannot be asked.
fn missing(
    version: &Version,
    kept: &Kept,
    chunks: &Chunks,
    range: &Range<u64>,
) -> Option<Vec<Range<u64>>> {
    let gaps = version.blocks(chunks, kept)?.missing(range.clone()).ok()?;
    let blocks = |gap: &Range<u64>| in_blocks(gap, kept.block_len, version.len());
    Some(gaps.iter().flat_map(blocks).collect())
}

/// Which tickets are fetched by one request: as many as lie close together, as long as that is not
/// too long and nobody else fetches what lies between.
fn in_requests(version: &Version, mine: Vec<Flight>, theirs: &[Waiter]) -> Vec<Vec<Flight>> {
    let settings = &version.engine.settings;
    let mut requests: Vec<Vec<Flight>> = Vec::new();
    for ticket in mine {
        let range = ticket.range();
        let joins = |tickets: &Vec<Flight>| {
            let (Some(first), Some(last)) = (tickets.first(), tickets.last()) else { return false };
            let gap = last.range().end..range.start;
            let taken = |waiting: &Waiter| {
                waiting.range().start >= gap.start && waiting.range().start < gap.end
            };
            !version.head.ranges
                || (gap.end - gap.start <= settings.gap_most
                    && range.end - first.range().start <= settings.request_most
                    && !theirs.iter().any(taken))
        };
        match requests.last_mut().filter(|tickets| joins(tickets)) {
            Some(tickets) => tickets.push(ticket),
            None => requests.push(vec![ticket]),
        }
    }
    requests
}

/// The pieces of a range: those that were requested, and between them blocks of the cache.
fn pieces(range: &Range<u64>, block_len: u64, requested: Vec<(Range<u64>, Source)>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    let cached = |pieces: &mut Vec<Piece>, until: u64, mut at: u64| {
        while at < until {
            let end = ((at / block_len + 1) * block_len).min(until);
            pieces.push(Piece { range: at..end, source: Source::Cached(None) });
            at = end;
        }
    };
    for (bytes, source) in requested {
        let (start, end) = (bytes.start.max(at), bytes.end.min(range.end));
        if start >= end {
            continue;
        }
        cached(&mut pieces, start, at);
        pieces.push(Piece { range: start..end, source });
        at = end;
    }
    cached(&mut pieces, range.end, at);
    pieces
}

/// A piece out of the cache, if it is there still.
pub(crate) fn read(
    version: &Version,
    kept: &Kept,
    chunks: &Chunks,
    range: &Range<u64>,
) -> Option<Bytes> {
    let blocks = version.blocks(chunks, kept)?;
    found(blocks.get(range.clone())).map(Bytes::from)
}
