//! Disks that fail or stall.

use nuthatch_tiered::{Disk, SystemDisk};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

/// The kinds of operations that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fails {
    /// All that change files, from the operation on: the process died.
    All,
    /// Those that write item files or reserve space for them.
    ItemWrites,
    /// Reads of item files.
    ItemReads,
    /// Removals of item files.
    ItemRemovals,
}

/// A disk whose operations of one kind fail after a number of them were done, and whose writes of
/// item files wait while it is stalled.
pub(crate) struct FailingDisk {
    fails: Fails,
    errno: i32,
    /// The operations of this kind that are still done.
    left: AtomicU64,
    stall: Mutex<Stall>,
    stall_ended: Condvar,
}

#[derive(Default)]
struct Stall {
    is_stalled: bool,
    waiting_writes: u64,
}

impl FailingDisk {
    pub(crate) fn new(fails: Fails, errno: i32, after: u64) -> Self {
        let (left, stall, stall_ended) = (AtomicU64::new(after), Mutex::default(), Condvar::new());
        Self { fails, errno, left, stall, stall_ended }
    }

    /// Creates a disk that only stalls.
    pub(crate) fn without_failures() -> Self {
        Self::new(Fails::All, 0, u64::MAX)
    }

    /// Sets whether writes of item files wait.
    pub(crate) fn set_stalled(&self, is_stalled: bool) {
        self.stall.lock().expect("no panic").is_stalled = is_stalled;
        self.stall_ended.notify_all();
    }

    /// Returns whether a write waits.
    pub(crate) fn has_waiting_write(&self) -> bool {
        self.stall.lock().expect("no panic").waiting_writes > 0
    }

    fn wait_while_stalled(&self) {
        let mut stall = self.stall.lock().expect("no panic");
        stall.waiting_writes += 1;
        let stall = self.stall_ended.wait_while(stall, |stall| stall.is_stalled);
        stall.expect("no panic").waiting_writes -= 1;
    }

    /// Sets how many operations are still done.
    pub(crate) fn fail_after(&self, operations: u64) {
        self.left.store(operations, Ordering::SeqCst);
    }

    /// Returns whether the next operation fails.
    pub(crate) fn fails_now(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    /// Counts an operation that is of one of these kinds.
    fn check(&self, kinds: &[Fails], name: &str) -> io::Result<()> {
        let is_items = self.fails == Fails::All || name.starts_with("items-");
        if !is_items || !kinds.contains(&self.fails) {
            return Ok(());
        }
        let one_less = |left: u64| left.checked_sub(1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::from_raw_os_error(self.errno)),
        }
    }
}

const WRITES: &[Fails] = &[Fails::All, Fails::ItemWrites];
const OTHERS: &[Fails] = &[Fails::All];

impl Disk for FailingDisk {
    fn create(&self, folder: &File, name: &str) -> io::Result<File> {
        self.check(WRITES, name)?;
        SystemDisk.create(folder, name)
    }

    fn allocate(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        self.check(WRITES, name)?;
        SystemDisk.allocate(file, name, len)
    }

    fn write(&self, file: &File, name: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check(WRITES, name)?;
        if name.starts_with("items-") {
            self.wait_while_stalled();
        }
        SystemDisk.write(file, name, bytes, offset)
    }

    fn read(&self, file: &File, name: &str, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check(&[Fails::ItemReads], name)?;
        SystemDisk.read(file, name, bytes, offset)
    }

    fn set_len(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        self.check(WRITES, name)?;
        SystemDisk.set_len(file, name, len)
    }

    fn sync(&self, file: &File, name: &str) -> io::Result<()> {
        self.check(OTHERS, name)?;
        SystemDisk.sync(file, name)
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        self.check(OTHERS, "")?;
        SystemDisk.sync_folder(folder)
    }

    fn rename(&self, folder: &File, from: &str, to: &str) -> io::Result<()> {
        self.check(OTHERS, to)?;
        SystemDisk.rename(folder, from, to)
    }

    fn remove(&self, folder: &File, name: &str) -> io::Result<()> {
        self.check(&[Fails::All, Fails::ItemRemovals], name)?;
        SystemDisk.remove(folder, name)
    }
}
