//! Early syncs of a file: the disk writes its first parts while the others are encoded.

use crate::error::{Error, Result};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Number of written bytes after which the file is synced.
const BYTES_PER_SYNC: u64 = 32 << 20;

/// Counts the bytes that are written to a file, and starts syncs of it.
pub(crate) struct Writeback {
    written: AtomicU64,
    syncs: SyncSender<()>,
}

impl Writeback {
    /// Calls `write`, and syncs the file on another thread whenever many bytes have been written.
    ///
    /// # Errors
    /// Returns the error of `write`, or of a sync: the system reports a failed write of a page only
    /// once, so the sync at the end of the build would succeed.
    pub(crate) fn during<R>(
        (file, path): (&File, &Path),
        write: impl FnOnce(&Self) -> Result<R>,
    ) -> Result<R> {
        let (syncs, requests) = sync_channel(1);
        thread::scope(|scope| {
            let sync = || requests.into_iter().try_for_each(|()| file.sync_data());
            let syncing = scope.spawn(sync);
            let written = write(&Self { written: AtomicU64::new(0), syncs });
            let synced = syncing.join().expect("no panic");
            let written = written?;
            synced.map_err(|e| Error::io(path, "sync", e))?;
            Ok(written)
        })
    }

    /// Counts written bytes.
    pub(crate) fn add(&self, bytes: u64) {
        let before = self.written.fetch_add(bytes, Ordering::Relaxed);
        if before / BYTES_PER_SYNC != (before + bytes) / BYTES_PER_SYNC {
            // Fails if a sync waits already, or one has failed, which is reported at the end.
            let _ = self.syncs.try_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_that_fails_while_the_file_is_written_fails_the_build() {
        let (_reader, writer) = std::io::pipe().expect("a pipe");
        // A pipe cannot be synced.
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let write = |bytes| {
            Writeback::during((&file, Path::new("users.nut")), |writeback| {
                writeback.add(bytes);
                Ok(bytes)
            })
        };
        assert!(write(BYTES_PER_SYNC - 1).is_ok_and(|written| written == BYTES_PER_SYNC - 1));
        let Err(Error::Io(error)) = write(BYTES_PER_SYNC) else { panic!("an error") };
        assert_eq!(error.operation, "sync");
    }
}
