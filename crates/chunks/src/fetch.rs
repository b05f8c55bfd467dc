//! Fetching what is missing once.

use crate::chunks::Chunks;
use crate::flights::Claim;
use crate::key::Key;
use nuthatch_segments::Claimed;
use std::ops::Range;

impl Chunks {
    /// Claims what is missing of an object, so that it is fetched once. The ranges are those that a
    /// lookup said are missing, merged perhaps; of chunks or of bytes, as long as it is always the
    /// same for one key.
    ///
    /// ```
    /// use nuthatch_chunks::{Chunks, Fetched, Lookup, Options};
    /// # let folder = tempfile::tempdir()?;
    /// # let chunks = Chunks::open(folder.path(), &Options::new().limit(64 << 20))?;
    /// let object = chunks.blocks("http://host/file", "\"v1\"", 3000, 1024)?;
    /// let Lookup::Missing(missing) = object.get(0..2000)? else { panic!("nothing is there") };
    /// let claim = chunks.claim(object.key(), &missing);
    /// for ticket in claim.mine {
    ///     let range = ticket.range();
    ///     let bytes = vec![7; (range.end - range.start) as usize]; // a request to the origin
    ///     let kept = object.put(range.start, &bytes)?.not_kept.is_none();
    ///     ticket.finish(if kept { Fetched::Stored } else { Fetched::Bytes(bytes.into()) });
    /// }
    /// for waiting in claim.theirs {
    ///     waiting.wait();
    /// }
    /// assert_eq!(object.get(0..2000)?, Lookup::Found(vec![7; 2000]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn claim(&self, key: &Key, missing: &[Range<u64>]) -> Claim {
        self.fills.claim(key, missing)
    }

    /// Claims a range of an object among processes, for whoever has claimed it in this one: without
    /// waiting, and until the answer is dropped or the process dies. `None` if another process, or
    /// another handle on the folder, has some of it. Whoever has the claim looks once more what is
    /// missing before he fetches it.
    pub fn claim_among_processes(
        &self,
        key: &Key,
        range: Range<u64>,
    ) -> std::io::Result<Option<Claimed>> {
        // Objects may share numbers: then one waits for the other for once.
        let first = u128::from_le_bytes(key.name) as u64 >> 2;
        let below = |number: u64| first + number.min(1 << 62);
        self.segments.claim(below(range.start)..below(range.end))
    }
}
