//! The header `Cache-Status` (RFC 9211): how much of a response is in the cache.

use nuthatch_origins::{ChunkedObject, Coverage};
use std::ops::Range;

/// The maximum number of blocks that are looked up for a response. A client can request all of a
/// large object and disconnect; this bounds the cost.
const MAX_BLOCKS: u64 = 1024;

/// Returns the header `Cache-Status` of a response with these ranges. A response that the origin
/// did not confirm is stale: its `ttl` is negative, the negative of its `Age`.
pub(crate) async fn cache_status(object: &ChunkedObject, ranges: Vec<Range<u64>>) -> String {
    let whole = ranges.iter().map(|range| range.end - range.start).sum();
    let found = {
        let object = object.clone();
        // The lookup may read files.
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
    // Bytes that were not looked up may be missing, so that the origin may have to send them.
    let forwarded = match percent {
        0 => "; fwd=miss",
        _ if missing > 0 => "; fwd=partial",
        _ => "",
    };
    let part = if bytes == whole { String::new() } else { format!("of the first {bytes} bytes ") };
    format!("nuthatch{forwarded}{ttl}; detail=\"{percent} % {part}in the cache\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_were_not_looked_up_are_neither_present_nor_missing() {
        let header =
            |whole, bytes, missing| write(whole, Coverage { examined: bytes, missing }, None);
        assert_eq!(header(0, 0, 0), "nuthatch; hit");
        assert_eq!(header(10, 10, 0), "nuthatch; hit");
        assert_eq!(header(10, 10, 3), "nuthatch; fwd=partial; detail=\"70 % in the cache\"");
        assert_eq!(header(10, 10, 10), "nuthatch; fwd=miss; detail=\"0 % in the cache\"");
        let examined = "nuthatch; detail=\"100 % of the first 4 bytes in the cache\"";
        assert_eq!(header(10, 4, 0), examined);
        let partial = "nuthatch; fwd=partial; detail=\"25 % of the first 4 bytes in the cache\"";
        assert_eq!(header(10, 4, 3), partial);
        let stale = |missing| write(10, Coverage { examined: 10, missing }, Some(7));
        assert_eq!(stale(0), "nuthatch; hit; ttl=-7; detail=\"not confirmed by the origin\"");
        assert_eq!(stale(5), "nuthatch; fwd=partial; ttl=-7; detail=\"50 % in the cache\"");
    }
}
