//! Maps of recent events, whose size is limited.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// The maximum number of entries of a map.
const MAX_ENTRIES: usize = 4096;

/// Adds an entry with the current time. In a full map, entries older than a minute are removed
/// first, or all entries if there are none.
pub(crate) fn remember<K: Hash + Eq, V>(map: &mut HashMap<K, (Instant, V)>, key: K, value: V) {
    if map.len() >= MAX_ENTRIES {
        let recent = Duration::from_mins(1);
        map.retain(|_, (at, _)| at.elapsed() < recent);
        if map.len() >= MAX_ENTRIES {
            map.clear();
        }
    }
    map.insert(key, (Instant::now(), value));
}
