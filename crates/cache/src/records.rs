//! What a cache needs to know about the records on disk to which its index points.

use crate::hash::KeyHash;

/// The records of items on disk. The index of the cache points to a record by its *place*: a number
/// of up to 36 bits that is not 0, and that is used for another record after the first one was
/// removed. The *identifier* of a record is never used again.
///
/// All methods are called under an epoch guard, and some while a part of the index is locked. So
/// they must not wait for other threads that use the cache.
pub trait Records: Send + Sync {
    /// Returns the identifier of the record at a place, or `None` if there is none. The index may
    /// contain the place as long as there is one.
    fn id(&self, place: u64) -> Option<u64>;

    /// Returns the place of the record with this identifier, or `None` if the index must not point
    /// to it any more.
    fn place(&self, id: u64) -> Option<u64>;

    /// Records that the items of these records were replaced or removed: they must not be found
    /// after the process ends. Called before the guard ends under which that happened.
    fn note_removed(&self, ids: &[u64]);

    /// Records the same for all records.
    fn note_all_removed(&self);

    /// Records that keys with these hashes were stored or removed while items are
    /// [restored](crate::Cache::begin_restore): none of the records that existed when that began
    /// may be found after the process ends. Called as [`note_removed`](Self::note_removed) is.
    fn note_changed(&self, hashes: &[u64]);
}

/// An item on disk that an operation needs: [`Guard::take_on_disk`](crate::Guard::take_on_disk).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnDisk {
    pub(crate) hash: KeyHash,
    pub(crate) place: u64,
    /// Whether the hash is that of a key. Otherwise the item was found without a key, and only the
    /// bits of the hash that the index knows are set.
    pub(crate) is_for_key: bool,
}

impl OnDisk {
    /// Returns the item whose record is at a place, for a key with this hash.
    #[must_use]
    pub fn new(hash: KeyHash, place: u64) -> Self {
        Self { hash, place, is_for_key: true }
    }

    /// Returns whether the item is the one that was needed if its key has this hash. It is not if
    /// the index could not tell the hash from that of another key. An item that was found without a
    /// key, as by [`Guard::scan`](crate::Guard::scan), always is.
    #[must_use]
    pub fn is_needed_for(self, hash: KeyHash) -> bool {
        !self.is_for_key || self.hash == hash
    }

    /// Returns the place of the record.
    #[must_use]
    pub fn place(self) -> u64 {
        self.place
    }
}
