//! Entries by a range of the hashes of their keys, so that an iteration can be interrupted, and can
//! continue in another generation of the snapshot.

use super::file::SnapshotFile;
use super::iter::Entry;
use super::snapshot::Snapshot;
use super::stored::StoredValue;
use crate::error::Result;
use crate::format::hash::KeyHash;
use std::ops::RangeInclusive;

impl Snapshot {
    /// Returns the seed of the key hash. Two snapshots with the same seed have the same hashes, and
    /// only then does [`each_in_hashes`](Self::each_in_hashes) select the same keys in both.
    pub fn hash_seed(&self) -> u64 {
        self.seed()
    }

    /// Calls `each` with every entry whose key has a hash in this range, once for each entry, in no
    /// particular order. The ranges that divide `0..=u64::MAX` divide the entries, whatever the
    /// number of lines and shards of the snapshot. Hashes are evenly distributed.
    ///
    /// Reads the index lines of the range in every shard, so a range should contain several entries
    /// of each shard. Does not allocate memory. Validates as [`iter`](Self::iter) does: a damaged
    /// record is an error in the place of its entry.
    pub fn each_in_hashes<'a>(
        &'a self,
        hashes: RangeInclusive<u64>,
        mut each: impl FnMut(Result<Entry<'a>>),
    ) {
        for file in self.each_file() {
            file.each_in_hashes(&hashes, &mut each);
        }
    }
}

impl SnapshotFile {
    fn each_in_hashes<'a>(
        &'a self,
        hashes: &RangeInclusive<u64>,
        each: &mut impl FnMut(Result<Entry<'a>>),
    ) {
        let lines = self.map.index().len() as u64;
        let home_of = |hash: u64| KeyHash(hash).line(lines);
        for home in home_of(*hashes.start())..=home_of(*hashes.end()) {
            // Keys that found no room in their home line are in one of the next lines.
            let mut probe = self.probe_from(home);
            loop {
                let line = match self.line(probe.line()) {
                    Ok(line) => line,
                    Err(error) => {
                        each(Err(error));
                        break;
                    }
                };
                for slot in line.used() {
                    match self.record(line.record(slot)) {
                        Ok(record) => {
                            let hash = self.hash(record.key);
                            if hashes.contains(&hash.0) && hash.line(lines) == home {
                                let value = StoredValue::new(self, &record);
                                each(Ok(Entry { key: record.key, value }));
                            }
                        }
                        // A record whose key is unknown is reported with the line that it is in.
                        Err(error) if probe.line() == home => each(Err(error)),
                        Err(_) => {}
                    }
                }
                if line.overflow() == 0 || !probe.advance() {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Snapshot, Value, WriterOptions};
    use std::collections::BTreeMap;

    fn built(entries: u64, shards: u32) -> (tempfile::TempDir, Snapshot) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.nut");
        let mut options = WriterOptions::new();
        if shards > 1 {
            options = options.shards(shards);
        }
        let mut writer = options.create(&path).expect("a writer");
        for number in 0..entries {
            let key = format!("key:{number}");
            writer.insert(key.as_bytes(), Value::I64(number.cast_signed())).expect("an entry");
        }
        writer.finish().expect("a file");
        let snapshot = Snapshot::open(&path).expect("a snapshot");
        (folder, snapshot)
    }

    #[test]
    fn ranges_that_divide_all_hashes_divide_the_entries() {
        for (entries, shards, steps) in [(0, 1, 3), (1, 1, 1), (5000, 1, 7), (5000, 4, 250)] {
            let (_folder, snapshot) = built(entries, shards);
            let mut found: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
            let width = u64::MAX / steps;
            for step in 0..=steps {
                let start = step * width;
                let end = if step == steps { u64::MAX } else { start + (width - 1) };
                snapshot.each_in_hashes(start..=end, |entry| {
                    *found.entry(entry.expect("an entry").key.to_vec()).or_default() += 1;
                });
            }
            assert_eq!(found.len() as u64, entries, "{shards} shards");
            assert!(found.values().all(|count| *count == 1), "{shards} shards");
        }
    }
}
