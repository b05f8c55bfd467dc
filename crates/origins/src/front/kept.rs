//! What the cache had of an answer before it was read, as RFC 9211 tells it.

use crate::object::ChunkedObject;
use std::ops::Range;

/// How many blocks are looked up for an answer. A client can ask for all of a large object and go
/// again; this is what that costs.
const BLOCKS_MOST: u64 = 1024;

/// What was found of ranges.
struct Looked {
    /// Bytes that were looked for, from the start of the ranges on.
    bytes: u64,
    /// How many of them have to be fetched.
    missing: u64,
}

/// Returns the header `Cache-Status` of an answer with these ranges. An answer that its origin did
/// not confirm is stale: it has a `ttl` below zero, the negative of its `Age`.
pub(super) async fn cache_status(object: &ChunkedObject, ranges: Vec<Range<u64>>) -> String {
    let whole = ranges.iter().map(|range| range.end - range.start).sum();
    let looked = look(object, ranges).await;
    let stale = object.stale_age().map(|age| age.as_secs());
    write(whole, &looked.unwrap_or(Looked { bytes: whole, missing: whole }), stale)
}

fn write(whole: u64, looked: &Looked, stale: Option<u64>) -> String {
    let Looked { bytes, missing } = *looked;
    let ttl = stale.map_or_else(String::new, |secs| format!("; ttl=-{secs}"));
    if missing == 0 && bytes == whole {
        let detail = stale.map_or("", |_| "; detail=\"not confirmed by the origin\"");
        return format!("nuthatch; hit{ttl}{detail}");
    }
    let percent = u128::from(bytes - missing.min(bytes)) * 100 / u128::from(bytes.max(1));
    // Whether the origin has to be asked for what was not looked at, nobody knows yet.
    let forwarded = match percent {
        0 => "; fwd=miss",
        _ if missing > 0 => "; fwd=partial",
        _ => "",
    };
    let part = if bytes == whole { String::new() } else { format!(" of the first {bytes} bytes") };
    format!("nuthatch{forwarded}{ttl}; detail=\"{percent} % kept{part}\"")
}

/// Looks ranges up, which are in order. `None` if nothing is kept of the object.
async fn look(object: &ChunkedObject, ranges: Vec<Range<u64>>) -> Option<Looked> {
    let version = object.version.clone();
    // Heads of records may have to be read.
    let looked = tokio::task::spawn_blocking(move || {
        let kept = version.kept()?;
        let blocks = version.blocks(kept.tasks.chunks(), kept)?;
        let (mut looked, mut left) = (Looked { bytes: 0, missing: 0 }, BLOCKS_MOST);
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            let first = range.start / kept.block_len;
            let end = range.end.min((first + left).saturating_mul(kept.block_len));
            if end <= range.start {
                break;
            }
            for gap in blocks.missing(range.start..end).ok()? {
                looked.missing += gap.end.min(end) - gap.start.max(range.start);
            }
            looked.bytes += end - range.start;
            left -= end.div_ceil(kept.block_len) - first;
        }
        Some(looked)
    });
    looked.await.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_looked_at_is_neither_there_nor_missing() {
        let tell = |whole, bytes, missing| write(whole, &Looked { bytes, missing }, None);
        assert_eq!(tell(0, 0, 0), "nuthatch; hit");
        assert_eq!(tell(10, 10, 0), "nuthatch; hit");
        assert_eq!(tell(10, 10, 3), "nuthatch; fwd=partial; detail=\"70 % kept\"");
        assert_eq!(tell(10, 10, 10), "nuthatch; fwd=miss; detail=\"0 % kept\"");
        assert_eq!(tell(10, 4, 0), "nuthatch; detail=\"100 % kept of the first 4 bytes\"");
        let partial = "nuthatch; fwd=partial; detail=\"25 % kept of the first 4 bytes\"";
        assert_eq!(tell(10, 4, 3), partial);
        let stale = |missing| write(10, &Looked { bytes: 10, missing }, Some(7));
        assert_eq!(stale(0), "nuthatch; hit; ttl=-7; detail=\"not confirmed by the origin\"");
        assert_eq!(stale(5), "nuthatch; fwd=partial; ttl=-7; detail=\"50 % kept\"");
    }
}
