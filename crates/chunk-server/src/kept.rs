//! What the cache had of an answer before it was read, as RFC 9211 tells it.

use nuthatch_origins::{ChunkedObject, Coverage};
use std::ops::Range;

/// The maximum number of blocks that are looked up for a response. A client can request all of a
/// large object and disconnect; this bounds the cost.
const MAX_BLOCKS: u64 = 1024;

/// Returns the header `Cache-Status` of an answer with these ranges. An answer that its origin did
/// not confirm is stale: it has a `ttl` below zero, the negative of its `Age`.
pub(crate) async fn cache_status(object: &ChunkedObject, ranges: Vec<Range<u64>>) -> String {
    let whole = ranges.iter().map(|range| range.end - range.start).sum();
    let found = {
        let object = object.clone();
        // Heads of records may have to be read.
        let look = move || object.coverage(&ranges, MAX_BLOCKS);
        tokio::task::spawn_blocking(look).await.ok().flatten()
    };
    let found = found.unwrap_or(Coverage { examined: whole, missing: whole });
    let stale = object.stale_age().map(|age| age.as_secs());
    write(whole, found, stale)
}

fn write(whole: u64, found: Coverage, stale: Option<u64>) -> String {
    let Coverage { examined: bytes, missing } = found;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_looked_at_is_neither_there_nor_missing() {
        let tell =
            |whole, bytes, missing| write(whole, Coverage { examined: bytes, missing }, None);
        assert_eq!(tell(0, 0, 0), "nuthatch; hit");
        assert_eq!(tell(10, 10, 0), "nuthatch; hit");
        assert_eq!(tell(10, 10, 3), "nuthatch; fwd=partial; detail=\"70 % kept\"");
        assert_eq!(tell(10, 10, 10), "nuthatch; fwd=miss; detail=\"0 % kept\"");
        assert_eq!(tell(10, 4, 0), "nuthatch; detail=\"100 % kept of the first 4 bytes\"");
        let partial = "nuthatch; fwd=partial; detail=\"25 % kept of the first 4 bytes\"";
        assert_eq!(tell(10, 4, 3), partial);
        let stale = |missing| write(10, Coverage { examined: 10, missing }, Some(7));
        assert_eq!(stale(0), "nuthatch; hit; ttl=-7; detail=\"not confirmed by the origin\"");
        assert_eq!(stale(5), "nuthatch; fwd=partial; ttl=-7; detail=\"50 % kept\"");
    }
}
