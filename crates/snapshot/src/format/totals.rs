//! The counts of entries in a header.

/// The counts of entries that a header stores, of a file or of a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) entries: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) stored_value_bytes: u64,
    pub(crate) shared: u64,
    pub(crate) compressed: u64,
    /// Entries by the code of their type.
    pub(crate) by_type: [u64; 16],
    /// The writer sets it when it places the entries. Verification does not compute it.
    pub(crate) max_probe: u32,
}

impl Totals {
    /// Adds the counts of other entries.
    pub(crate) fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.key_bytes += other.key_bytes;
        self.value_bytes += other.value_bytes;
        self.stored_value_bytes += other.stored_value_bytes;
        self.shared += other.shared;
        self.compressed += other.compressed;
        for (sum, count) in self.by_type.iter_mut().zip(other.by_type) {
            *sum += count;
        }
        self.max_probe = self.max_probe.max(other.max_probe);
    }
}
