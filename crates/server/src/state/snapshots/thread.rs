//! The readers of one thread.

use super::routes::Snapshots;
use super::served::Counts;
use nuthatch_snapshot::{Scratch, Snapshot, WatchReader};
use std::cell::RefCell;
use std::sync::Arc;

/// Maximum capacity of a buffer that is kept between requests.
const MAX_KEPT_CAPACITY: usize = 64 << 10;

/// The readers of one thread for the snapshots of one server, and buffers for values.
pub(super) struct ThreadReaders {
    /// [`Snapshots::id`].
    of: u64,
    pub(super) readers: Vec<(WatchReader, Arc<Counts>)>,
    /// The buffer of decompressed values.
    pub(super) scratch: Scratch,
    /// The buffer of values that become text.
    pub(super) text: Vec<u8>,
}

thread_local! {
    static READERS: RefCell<Option<ThreadReaders>> = const { RefCell::new(None) };
}

impl Snapshots {
    /// Calls `read` with the readers of this thread. It must not call this function.
    #[inline]
    pub(super) fn with_thread<R>(&self, read: impl FnOnce(&mut ThreadReaders) -> R) -> R {
        READERS.with_borrow_mut(|readers| {
            let readers = match readers {
                Some(readers) if readers.of == self.id => readers,
                other => other.insert(self.begin_thread()),
            };
            read(readers)
        })
    }

    #[cold]
    fn begin_thread(&self) -> ThreadReaders {
        let readers = self.served.iter().map(super::served::Served::begin_thread).collect();
        ThreadReaders { of: self.id, readers, scratch: Scratch::default(), text: Vec::new() }
    }

    /// Takes the newest generation of each snapshot for this thread, and lets go of older ones.
    /// Without this call, a thread reads the same generation forever.
    pub(crate) fn renew_thread(&self) {
        self.with_thread(|thread| {
            for (reader, _) in &mut thread.readers {
                reader.current();
            }
            if thread.text.capacity() > MAX_KEPT_CAPACITY {
                thread.text = Vec::new();
            }
        });
    }

    /// Calls `read` with the generation that this thread reads of the snapshot with this number.
    #[inline]
    pub(super) fn with_last<R>(&self, number: usize, read: impl FnOnce(&Snapshot) -> R) -> R {
        self.with_thread(|thread| read(thread.readers[number].0.last()))
    }
}
