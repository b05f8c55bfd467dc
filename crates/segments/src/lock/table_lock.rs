//! The table lock: `flock` on the folder.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Holds the table lock of a folder. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct TableLock(Arc<File>);

impl TableLock {
    /// Waits for the lock up to `patience`, because the holder may be a stopped process. Returns
    /// `None` if another process still has it.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn acquire(folder: &Arc<File>, patience: Duration) -> io::Result<Option<Self>> {
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

impl Drop for TableLock {
    fn drop(&mut self) {
        crate::work_counters::end_hold();
        // Closing the file is not enough: a forked child has a copy of the descriptor.
        let _ = flock(self.0.as_fd(), FlockOperation::Unlock);
    }
}
