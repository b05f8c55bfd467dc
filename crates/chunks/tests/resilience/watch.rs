//! Looks at the size of the folder, all the time.

use crate::LIMIT;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

/// What all files of a folder have, or take on the disk, whichever is more.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let own = std::fs::metadata(folder).map_or(0, |found| found.blocks() * 512);
    // A file that gets another name meanwhile is seen twice.
    let mut seen = BTreeSet::new();
    own + entries
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .filter(|found| seen.insert(found.ino()))
        .map(|found| found.len().max(found.blocks() * 512))
        .sum::<u64>()
}

/// A line for each file: its name, what it has, what it takes on the disk.
fn files(folder: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(folder) else { return String::new() };
    let line = |entry: std::fs::DirEntry| {
        let found = entry.metadata().ok()?;
        let taken = found.blocks() * 512;
        Some(format!("{} {} {taken}\n", entry.file_name().display(), found.len()))
    };
    entries.filter_map(|entry| line(entry.ok()?)).collect()
}

/// The size while nobody begins or evicts a segment: a look without the lock may see one file
/// before it goes, and the next one after it came.
fn size_at_rest(folder: &Path) -> u64 {
    let Ok(file) = File::open(folder) else { return 0 };
    // Given back when the file is closed.
    if flock(&file, FlockOperation::LockExclusive).is_err() {
        return 0;
    }
    size(folder)
}

/// Looks until it is told to stop. How often, or by how much the limit was exceeded.
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
