//! Looks at the size of the folder, all the time.

use crate::LIMIT;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

/// What all files of a folder have, or take on the disk, whichever is more.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let own = std::fs::metadata(folder).map_or(0, |found| found.blocks() * 512);
    own + entries
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|found| found.len().max(found.blocks() * 512))
        .sum::<u64>()
}

/// Looks until it is told to stop. How often, or by how much the limit was exceeded.
pub(crate) fn limit(folder: &Path, stopped: &Receiver<()>) -> Result<u64, String> {
    let mut looks = 0;
    while stopped.try_recv() == Err(TryRecvError::Empty) {
        let found = size(folder);
        looks += 1;
        if found > LIMIT {
            return Err(format!("the folder has {found} bytes of {LIMIT}"));
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    Ok(looks)
}
