//! Opens a store, with a warning if that takes long.

use crate::logs::warn;
use nuthatch_store::{Options, Result, Store};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The time after which a warning is logged.
const WARN_AFTER: Duration = Duration::from_secs(1);

/// Opens a store. While another process compacts it, opening waits, however long that takes: a
/// warning says so after a second.
///
/// # Errors
///
/// Returns the same errors as [`Store::open`].
pub(crate) fn open_store(path: &Path, options: &Options) -> Result<Store> {
    thread::scope(|scope| {
        let (opened, is_opened) = channel::<()>();
        let report = move || {
            if is_opened.recv_timeout(WARN_AFTER) == Err(RecvTimeoutError::Timeout) {
                let path = path.display();
                warn(format_args!(
                    "{path}: waiting to open the store: another process may be compacting it"
                ));
            }
        };
        // Without a thread to report it, opening still waits.
        let _ = thread::Builder::new().spawn_scoped(scope, report);
        let store = Store::open(path, options);
        drop(opened);
        store
    })
}
