//! The lock of the folder.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A lock on a folder; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct FolderLock(Arc<File>);

impl FolderLock {
    /// Waits for the lock, but no longer than `patience`: the holder may have been stopped. `None`
    /// if somebody else has it still.
    pub(crate) fn take(folder: &Arc<File>, patience: Duration) -> io::Result<Option<Self>> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            match flock(folder.as_fd(), FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    crate::work_counters::begin_hold();
                    return Ok(Some(Self(folder.clone())));
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if began.elapsed() >= patience {
                return Ok(None);
            }
            crate::work_counters::count_wait();
            std::thread::park_timeout(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        crate::work_counters::end_hold();
        // A child that was forked meanwhile has a copy of the descriptor; so closing is not enough.
        let _ = flock(self.0.as_fd(), FlockOperation::Unlock);
    }
}
