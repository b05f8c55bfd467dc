//! Fetching what is missing once: for all threads of this process, and for all processes.

use crate::chunks::Chunks;
use crate::flights::SingleFlight;
use crate::key::Key;
use nuthatch_segments::FetchLock;
use std::ops::Range;

impl Chunks {
    /// Divides the missing ranges of an object into those that the caller must fetch and those that
    /// other callers are fetching, so that each is fetched once. The ranges are those that a lookup
    /// returned, or merged ones ([`merge_gaps`](crate::merge_gaps)). Their unit is chunks or bytes,
    /// always the same for one key.
    ///
    /// ```
    /// use nuthatch_chunks::{Chunks, Fetched, Lookup, Options};
    /// # let folder = tempfile::tempdir()?;
    /// # let chunks = Chunks::open(folder.path(), &Options::new().limit(64 << 20))?;
    /// let object = chunks.blocks("http://host/file", "\"v1\"", 3000, 1024)?;
    /// let Lookup::Missing(missing) = object.get(0..2000)? else { panic!("the cache is empty") };
    /// let fetches = chunks.single_flight(object.key(), &missing);
    /// for flight in fetches.flights {
    ///     let range = flight.range();
    ///     let bytes = vec![7; (range.end - range.start) as usize]; // a request to the origin
    ///     let is_stored = object.put(range.start, &bytes)?.not_kept.is_none();
    ///     flight.finish(if is_stored { Fetched::Stored } else { Fetched::Bytes(bytes.into()) });
    /// }
    /// for waiter in fetches.waiters {
    ///     waiter.wait();
    /// }
    /// assert_eq!(object.get(0..2000)?, Lookup::Found(vec![7; 2000]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn single_flight(&self, key: &Key, missing: &[Range<u64>]) -> SingleFlight {
        self.flights.join(key, missing)
    }

    /// Takes the fetch lock of a range of an object without waiting, for a caller that has a flight
    /// for it. `None` if another process, or another handle on the folder, has the lock of some of
    /// it. The lock is released when it is dropped or the process dies. The caller looks up the
    /// range again after it got the lock, before it fetches.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn try_fetch_lock(
        &self,
        key: &Key,
        range: Range<u64>,
    ) -> std::io::Result<Option<FetchLock>> {
        // Objects may share numbers. Then a fetch of one may wait for a fetch of the other.
        let first = u128::from_le_bytes(key.name) as u64 >> 2;
        let number = |number: u64| first + number.min(1 << 62);
        self.segments.try_fetch_lock(number(range.start)..number(range.end))
    }
}
