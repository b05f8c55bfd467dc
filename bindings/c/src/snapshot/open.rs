//! Opening and closing of snapshots.

use crate::error::{Failure, Result, nuthatch_error};
use crate::memory::{export_body, unbound};
use snapshot_engine::{OpenOptions, Residency, Snapshot, SnapshotFile, WatchReader};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// The file is mapped and read on demand. All processes share its pages.
pub const NUTHATCH_SNAPSHOT_MAPPED: u32 = 0;
/// The file is mapped, and opening it reads and maps every page.
pub const NUTHATCH_SNAPSHOT_POPULATED: u32 = 1;
/// The file is copied into memory of this process, on huge pages if the system provides them. Gives
/// the fastest lookups in large files. The copy does not depend on later changes of the file.
pub const NUTHATCH_SNAPSHOT_HUGE_PAGES: u32 = 2;

/// Options for opening a snapshot. A null pointer, and a struct of zeros, are the default options.
#[repr(C)]
pub struct nuthatch_snapshot_options {
    /// Where the bytes are kept: `NUTHATCH_SNAPSHOT_MAPPED`, `_POPULATED` or `_HUGE_PAGES`.
    pub residency: u32,
    /// 1: lock the bytes in memory, so that the system never pages them out. Needs the privilege
    /// `CAP_IPC_LOCK` or a sufficient limit `RLIMIT_MEMLOCK`.
    pub lock: u32,
    /// 1: guard the map by a signal handler for SIGBUS, which is installed once in the process and
    /// stays installed. If the file is truncated or its device fails, missing bytes then read as
    /// zeros, errors about damage become `unreadable`, and `nuthatch_snapshot_check_readable`,
    /// called after lookups, fails with that code. At most 4,096 files are guarded at once. 0: the
    /// signal ends the process.
    pub guard: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// An open snapshot.
///
/// It has a count of references. `nuthatch_snapshot_open` returns it with one reference,
/// `nuthatch_snapshot_retain` adds one, and `nuthatch_snapshot_close` releases one; an iterator has
/// one until it is closed. When the last reference is released, the file is unmapped and the
/// pointer becomes invalid. Any number of threads may use the pointer at once. A thread that reads
/// while another thread may close needs a reference of its own.
pub struct nuthatch_snapshot {
    /// The file of `snapshot` if [`Snapshot::usual_file`] has one, until the snapshot is stopped;
    /// otherwise null. One load decides whether a lookup can take the shortest way.
    usual: AtomicPtr<SnapshotFile>,
    /// The sum of [`STOPPED`] and [`COMPRESSED`], or one of them, or 0.
    state: AtomicU8,
    /// Borrows from `owner`.
    snapshot: &'static Snapshot,
    _owner: Owner,
}

/// The snapshot was stopped.
const STOPPED: u8 = 1;
/// The header counts compressed values.
const COMPRESSED: u8 = 2;

/// The owner of a snapshot. It does not move the snapshot.
enum Owner {
    File(#[expect(dead_code, reason = "keeps the snapshot")] Arc<Snapshot>),
    /// The reader never asks for a newer generation, so it keeps the one that it has.
    Generation(#[expect(dead_code, reason = "keeps the snapshot")] WatchReader),
}

impl nuthatch_snapshot {
    fn of_file(snapshot: Snapshot) -> Arc<Self> {
        let owner = Arc::new(snapshot);
        // SAFETY: an `Arc` does not move its value, and `self` keeps this one.
        let snapshot = unsafe { unbound(&*owner) };
        Self::new(snapshot, Owner::File(owner))
    }

    /// Returns the newest generation of a watch. The reader is not used again.
    pub(crate) fn of_generation(mut reader: WatchReader) -> Arc<Self> {
        // SAFETY: the reader has a reference to the generation, which it keeps while `current` is
        // not called again. `self` keeps the reader.
        let snapshot = unsafe { unbound(reader.current()) };
        Self::new(snapshot, Owner::Generation(reader))
    }

    fn new(snapshot: &'static Snapshot, owner: Owner) -> Arc<Self> {
        let is_compressed = snapshot.stats().compressed_entries > 0;
        let state = AtomicU8::new(if is_compressed { COMPRESSED } else { 0 });
        let usual = snapshot.usual_file().map_or(ptr::null(), ptr::from_ref);
        Arc::new(Self { usual: AtomicPtr::new(usual.cast_mut()), state, snapshot, _owner: owner })
    }

    /// Returns the snapshot, or `closed` after `nuthatch_snapshot_stop`.
    #[inline(always)]
    pub(crate) fn get(&self) -> Result<&Snapshot> {
        if self.state.load(Ordering::Relaxed) & STOPPED != 0 {
            return Err(stopped());
        }
        Ok(self.snapshot)
    }

    /// Returns the address of the file for [`SnapshotFile::get_usual`], or null. It is valid as
    /// long as `self`.
    #[inline(always)]
    pub(crate) fn usual_file(&self) -> *const SnapshotFile {
        self.usual.load(Ordering::Relaxed)
    }

    /// Returns the snapshot, unless it was stopped or its header counts compressed values.
    #[inline(always)]
    pub(crate) fn without_compression(&self) -> Option<&Snapshot> {
        (self.state.load(Ordering::Relaxed) == 0).then_some(self.snapshot)
    }

    /// Returns whether this is the snapshot.
    pub(crate) fn is(&self, snapshot: &Snapshot) -> bool {
        std::ptr::eq(self.snapshot, snapshot)
    }
}

#[cold]
fn stopped() -> Failure {
    Failure::closed("the snapshot is closed")
}

pub(crate) fn options_of(options: Option<&nuthatch_snapshot_options>) -> Result<OpenOptions> {
    let Some(options) = options else { return Ok(OpenOptions::new().guard(false)) };
    let residency = match options.residency {
        NUTHATCH_SNAPSHOT_MAPPED => Residency::Mapped,
        NUTHATCH_SNAPSHOT_POPULATED => Residency::Populated,
        NUTHATCH_SNAPSHOT_HUGE_PAGES => Residency::HugePages,
        found => return Err(Failure::argument("residency", "from 0 to 2", found)),
    };
    if options.reserved != 0 {
        return Err(Failure::argument("reserved", "0", options.reserved));
    }
    let (lock, guard) = (options.lock != 0, options.guard != 0);
    Ok(OpenOptions::new().residency(residency).lock(lock).guard(guard))
}

/// Opens a snapshot: a file, or a set of shards by the path of its manifest. `options` may be null.
/// Returns the snapshot in `snapshot`, with one reference. Reads headers, dictionaries and the
/// manifest only, unless `residency` or `lock` requires all bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_open(
    path: *const u8,
    path_len: usize,
    options: *const nuthatch_snapshot_options,
    snapshot: *mut *const nuthatch_snapshot,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("snapshot", snapshot)?;
        let path = Path::new(OsStr::from_bytes(caller.bytes("path", path, path_len)?));
        let options = options_of(caller.maybe("options", options)?)?;
        out.put(Arc::into_raw(nuthatch_snapshot::of_file(options.open(path)?)));
        Ok(())
    })
}

/// Opens a snapshot from the bytes of one file, such as a file that is part of the program. Copies
/// the bytes. Returns the snapshot in `snapshot`, with one reference. The bytes of a manifest are
/// the error `unsupported`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_open_bytes(
    bytes: *const u8,
    bytes_len: usize,
    snapshot: *mut *const nuthatch_snapshot,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("snapshot", snapshot)?;
        let opened = Snapshot::from_bytes(caller.bytes("bytes", bytes, bytes_len)?)?;
        out.put(Arc::into_raw(nuthatch_snapshot::of_file(opened)));
        Ok(())
    })
}

/// Adds a reference to a snapshot, for another thread or another owner. One call of
/// `nuthatch_snapshot_close` releases it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_retain(
    snapshot: *const nuthatch_snapshot,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let _given = Arc::into_raw(caller.share("snapshot", snapshot)?);
        Ok(())
    })
}

/// Stops a snapshot: later calls that read it, or an iterator of it, fail with `closed` in all
/// threads. A call that is running in another thread may still succeed. Releases nothing: pointers
/// to keys and values stay valid, and each reference must still be released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_stop(
    snapshot: *const nuthatch_snapshot,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let open = caller.one("snapshot", snapshot)?;
        open.state.fetch_or(STOPPED, Ordering::Relaxed);
        open.usual.store(ptr::null_mut(), Ordering::Relaxed);
        Ok(())
    })
}

/// Releases a reference to a snapshot. With the last reference, the file is unmapped, and all
/// pointers to its keys and values become invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_close(
    snapshot: *const nuthatch_snapshot,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| caller.take_shared("snapshot", snapshot).map(drop))
}
