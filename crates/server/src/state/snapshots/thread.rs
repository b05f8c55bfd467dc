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
            if thread.scratch.capacity() > MAX_KEPT_CAPACITY {
                thread.scratch = Scratch::default();
            }
        });
    }

    /// Calls `read` with the generation that this thread reads of the snapshot with this number.
    #[inline]
    pub(super) fn with_last<R>(&self, number: usize, read: impl FnOnce(&Snapshot) -> R) -> R {
        self.with_thread(|thread| read(thread.readers[number].0.last()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{SnapshotMemory, SnapshotSource};
    use nuthatch_snapshot::{Value, Writer};
    use std::path::Path;

    fn build(path: &Path, number: i64) {
        let mut writer = Writer::create(path).expect("a writer");
        writer.insert(b"k", Value::I64(number)).expect("an entry");
        writer.finish().expect("a snapshot");
    }

    #[test]
    fn a_thread_reads_one_generation_until_it_is_renewed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.nut");
        build(&path, 1);
        let source = SnapshotSource { name: "a".into(), prefix: b"a:".to_vec(), path };
        let snapshots = Snapshots::open(vec![source.clone()], SnapshotMemory::default());
        let snapshots = snapshots.expect("a snapshot");
        let read = || {
            let key = snapshots.key(b"a:k").expect("a key of the snapshot");
            let text = key.text(|| usize::MAX, |text| text.map(<[u8]>::to_vec));
            let value = key.value(|value| value.copied().map(|value| value == Value::I64(1)));
            (text.expect("a text").expect("a value"), value.expect("a value"))
        };
        assert_eq!(read(), (b"1".to_vec(), Some(true)));
        build(&source.path, 2);
        snapshots.served[0].watch.refresh();
        assert_eq!(read(), (b"1".to_vec(), Some(true)), "a request has not ended");
        snapshots.renew_thread();
        assert_eq!(read(), (b"2".to_vec(), Some(false)));
    }
}
