//! Watches: readers switch to a new file while they read.

use super::open::{nuthatch_snapshot, nuthatch_snapshot_options, options_of};
use super::types::nuthatch_snapshot_watch;
use crate::error::{Result, nuthatch_error, truncated};
use crate::handles::{self, HandleObject};
use crate::memory::export_body;
use snapshot_engine::{Generations, Watch, WatchOptions, WatchReader};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// For `poll_interval_ms`: only `nuthatch_snapshot_watch_refresh` polls.
pub const NUTHATCH_SNAPSHOT_NO_POLLING: u32 = u32::MAX;

/// Options of a watch. A null pointer, and a struct of zeros, are the default options.
#[repr(C)]
pub struct nuthatch_snapshot_watch_options {
    /// How files are opened.
    pub open: nuthatch_snapshot_options,
    /// Time between polls for a new file in milliseconds; 0: 250. `NUTHATCH_SNAPSHOT_NO_POLLING`:
    /// no polls. If a system call fails for a new file, it is tried again after 1, 2, 4 and at most
    /// 64 intervals. A damaged file is tried again only when the file at the path changes.
    pub poll_interval_ms: u32,
    /// 1: every byte of a file is verified before readers switch to it. 0: a file is only opened,
    /// which checks its header.
    pub verify: u32,
}

/// The status of a watch.
#[repr(C)]
pub struct nuthatch_snapshot_watch_status {
    /// Number of switches to a new file.
    pub switched: u64,
    /// Number of times that the newest file could not be opened or verified, or that there was no
    /// file. The same error in successive polls counts once.
    pub rejected: u64,
    /// 1 if an error prevents the switch to the newest file, otherwise 0.
    pub has_error: u32,
    /// Always 0.
    pub reserved: u32,
    /// The error in UTF-8, terminated by a zero byte; empty without one. A longer message is
    /// truncated.
    pub error: [u8; 488],
    /// The path of the file that readers read, terminated by a zero byte. A longer path is
    /// truncated.
    pub path: [u8; 4096],
}

/// A reader of a watch. One thread at a time may use it.
pub struct nuthatch_snapshot_reader {
    reader: WatchReader,
    current: Arc<nuthatch_snapshot>,
}

impl nuthatch_snapshot_reader {
    fn new(reader: WatchReader) -> Self {
        let current = nuthatch_snapshot::of_generation(reader.clone());
        Self { reader, current }
    }

    /// Returns the newest generation.
    #[inline]
    fn current(&mut self) -> &Arc<nuthatch_snapshot> {
        if !self.current.is(self.reader.current()) {
            self.current = nuthatch_snapshot::of_generation(self.reader.clone());
        }
        &self.current
    }
}

/// The object of a watch's handle.
struct OpenWatch(Watch);

impl HandleObject for OpenWatch {
    const KIND: &str = "a snapshot watch";
}

fn watch_options(options: Option<&nuthatch_snapshot_watch_options>) -> Result<WatchOptions> {
    let made = WatchOptions::new().open_options(options_of(options.map(|options| &options.open))?);
    let Some(options) = options else { return Ok(made) };
    let made = made.verify(options.verify != 0);
    Ok(match options.poll_interval_ms {
        0 => made,
        NUTHATCH_SNAPSHOT_NO_POLLING => made.interval(Duration::ZERO),
        ms => made.interval(Duration::from_millis(ms.into())),
    })
}

/// Opens the snapshot at a path, and watches the path for files that are renamed over it. `options`
/// may be null. Returns the handle in `watch`. Fails if the first file cannot be opened or
/// verified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_watch_open(
    path: *const u8,
    path_len: usize,
    options: *const nuthatch_snapshot_watch_options,
    watch: *mut nuthatch_snapshot_watch,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("watch", watch)?;
        let path = Path::new(OsStr::from_bytes(caller.bytes("path", path, path_len)?));
        let options = watch_options(caller.maybe("options", options)?)?;
        out.put(handles::create(OpenWatch(options.path(path)?)));
        Ok(())
    })
}

/// Opens the latest of several generations, and watches for later ones. Generation 42 of the name
/// `dir/users` is the file `dir/users.42.nut`; the file `dir/users.latest` has the number of the
/// latest generation in decimal digits. `options` may be null. Returns the handle in `watch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_watch_open_generations(
    name: *const u8,
    name_len: usize,
    options: *const nuthatch_snapshot_watch_options,
    watch: *mut nuthatch_snapshot_watch,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("watch", watch)?;
        let generations = Generations::of(OsStr::from_bytes(caller.bytes("name", name, name_len)?));
        let options = watch_options(caller.maybe("options", options)?)?;
        out.put(handles::create(OpenWatch(options.generations(generations)?)));
        Ok(())
    })
}

/// Publishes a generation: replaces the file `NAME.latest`, so that watches switch their readers to
/// the file `NAME.GENERATION.nut`. Fails with `io` if that file does not exist. Waits for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_publish_generation(
    name: *const u8,
    name_len: usize,
    generation: u64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let generations = Generations::of(OsStr::from_bytes(caller.bytes("name", name, name_len)?));
        Ok(generations.publish(generation)?)
    })
}

/// Polls for a new file now, and tries a file again that was rejected before. Returns in
/// `switched`, which may be null, 1 if readers switch to a new file, otherwise 0. If the file is
/// rejected, the call succeeds, and the status has the error. Waits while another thread opens or
/// verifies a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_watch_refresh(
    watch: nuthatch_snapshot_watch,
    switched: *mut u32,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.maybe_out(switched);
        out.put(u32::from(handles::find::<OpenWatch>(watch)?.0.refresh()));
        Ok(())
    })
}

/// Returns the status of a watch in `status`. Does not wait while a file is opened or verified.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_watch_status_of(
    watch: nuthatch_snapshot_watch,
    status: *mut nuthatch_snapshot_watch_status,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("status", status)?;
        let status = handles::find::<OpenWatch>(watch)?.0.status();
        let mut path = [0; 4096];
        let bytes = status.path.as_os_str().as_bytes();
        let len = bytes.len().min(path.len() - 1);
        path[..len].copy_from_slice(&bytes[..len]);
        out.put(nuthatch_snapshot_watch_status {
            switched: status.switched,
            rejected: status.rejected,
            has_error: u32::from(status.error.is_some()),
            reserved: 0,
            error: truncated(status.error.as_deref().unwrap_or_default()),
            path,
        });
        Ok(())
    })
}

/// Closes a watch: polling stops. Its readers keep the files that they have. Waits while the watch
/// opens or verifies a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_watch_close(
    watch: nuthatch_snapshot_watch,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| handles::close::<OpenWatch>(watch).map(drop))
}

/// Opens a reader of a watch for one thread. Returns it in `reader`. The caller closes it. A reader
/// stays usable after the watch is closed, and then always returns the same snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_reader_open(
    watch: nuthatch_snapshot_watch,
    reader: *mut *mut nuthatch_snapshot_reader,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("reader", reader)?;
        let opened = nuthatch_snapshot_reader::new(handles::find::<OpenWatch>(watch)?.0.reader());
        out.put(Box::into_raw(Box::new(opened)));
        Ok(())
    })
}

/// Returns the newest snapshot in `snapshot`. The pointer, and its keys and values, are valid until
/// the next call for this reader. The reader owns the reference: the caller does not close the
/// snapshot, or first adds a reference of its own by `nuthatch_snapshot_retain`, to keep it for
/// longer. Takes no lock, unless there is a new file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_reader_current(
    reader: *mut nuthatch_snapshot_reader,
    snapshot: *mut *const nuthatch_snapshot,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("snapshot", snapshot)?;
        out.put(Arc::as_ptr(caller.exclusive("reader", reader)?.current()));
        Ok(())
    })
}

/// Closes a reader, and releases its reference to the snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_reader_close(
    reader: *mut nuthatch_snapshot_reader,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| caller.take("reader", reader).map(drop))
}
