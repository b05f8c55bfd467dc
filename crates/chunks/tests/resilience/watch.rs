//! Watches the size of the folder.

use crate::LIMIT;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

/// Returns the size of all files of a folder: for each, the greater of its length and its disk
/// space.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let own = std::fs::metadata(folder).map_or(0, |found| found.blocks() * 512);
    // A file that is renamed meanwhile may be listed twice.
    let mut seen = BTreeSet::new();
    own + entries
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .filter(|found| seen.insert(found.ino()))
        .map(|found| found.len().max(found.blocks() * 512))
        .sum::<u64>()
}

/// Returns a line for each file: its name, length and disk space.
fn files(folder: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(folder) else { return String::new() };
    let line = |entry: std::fs::DirEntry| {
        let found = entry.metadata().ok()?;
        let taken = found.blocks() * 512;
        Some(format!("{} {} {taken}\n", entry.file_name().display(), found.len()))
    };
    entries.filter_map(|entry| line(entry.ok()?)).collect()
}

/// Returns the size under the table lock: otherwise a segment that is evicted and its successor
/// might both be counted.
fn size_at_rest(folder: &Path) -> u64 {
    let Ok(file) = File::open(folder) else { return 0 };
    // Closing the file releases the lock.
    if flock(&file, FlockOperation::LockExclusive).is_err() {
        return 0;
    }
    size(folder)
}

/// Watches the size until it is stopped. Returns the number of checks.
///
/// # Errors
///
/// Returns a message if the limit was exceeded.
pub(crate) fn limit(folder: &Path, stopped: &Receiver<()>) -> Result<u64, String> {
    let mut looks = 0_u64;
    while stopped.try_recv() == Err(TryRecvError::Empty) {
        looks += 1;
        let suspicious = size(folder) > LIMIT;
        if suspicious || looks.is_multiple_of(16) {
            let found = size_at_rest(folder);
            if found > LIMIT {
                let files = files(folder);
                return Err(format!("the folder has {found} bytes of {LIMIT}:\n{files}"));
            }
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    Ok(looks)
}
