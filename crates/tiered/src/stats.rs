//! Counters and statistics of the disk tier.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of the disk tier.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        /// Statistics of the disk tier. Counters start when the cache is opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct DiskStats {
            $($(#[$doc])* pub $name: u64,)*
            /// Bytes of all files in the folder.
            pub bytes: u64,
            /// The maximum of these bytes.
            pub max_bytes: u64,
            /// Number of item files.
            pub files: u64,
            /// Reads that wait to be performed, and those in progress.
            pub queued_reads: u64,
            /// Whether items of the last run are being recovered.
            pub is_recovering: bool,
            /// Whether writing has ended because of an error.
            pub is_off: bool,
        }

        impl Counters {
            pub(crate) fn read(&self) -> DiskStats {
                DiskStats {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    ..DiskStats::default()
                }
            }
        }
    };
}

counters! {
    /// Items that were read from disk for an operation.
    hits,
    /// Reads from disk.
    reads,
    /// Bytes read from disk.
    read_bytes,
    /// Records that could not be read, or were damaged. Their items are lost.
    bad_records,
    /// Records whose compressed value could not be decompressed. Their items are lost.
    undecodable,
    /// Records that were read for the lookup of another key, whose hash has the same bits.
    false_matches,
    /// Items written to disk.
    written,
    /// Bytes of the keys and values of these items.
    written_item_bytes,
    /// Bytes written to disk, with everything that belongs to them.
    written_bytes,
    /// Items that left memory and were not written.
    dropped,
    /// Items that were removed with the oldest item file, to make room.
    removed_for_room,
    /// Items of the last run that are in the index again.
    recovered,
    /// Records of the last run that were removed because a damaged part of the removal log may have
    /// named them.
    lost,
    /// Records of the last run.
    to_recover,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}
