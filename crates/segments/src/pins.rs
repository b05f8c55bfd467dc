//! Names whose parts are not evicted: a small file, replaced whole.

use crate::error::Result;
use crate::folder::Folder;
use crate::layout::{PINS_NAME, PINS_NEW, pins as at};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use xxhash_rust::xxh3::xxh3_64;

/// The names that are pinned. None if the list is damaged or missing: pins are a wish, not data.
pub(crate) fn load(folder: &Folder) -> BTreeSet<[u8; 16]> {
    let Ok(file) = folder.open_file(PINS_NAME, OFlags::RDONLY) else { return BTreeSet::new() };
    let mut bytes = Vec::new();
    let most = at::NAMES + at::MOST * at::NAME_LEN;
    if file.take(most as u64).read_to_end(&mut bytes).is_err() || bytes.len() < at::NAMES {
        return BTreeSet::new();
    }
    let names = &bytes[at::NAMES..];
    let right = bytes[..at::CHECK] == *at::MAGIC
        && bytes[at::CHECK..at::NAMES] == xxh3_64(names).to_le_bytes();
    if !right {
        return BTreeSet::new();
    }
    names.chunks_exact(at::NAME_LEN).filter_map(|name| name.try_into().ok()).collect()
}

/// Replaces the list.
pub(crate) fn store(folder: &Folder, names: &BTreeSet<[u8; 16]>) -> Result<()> {
    let fail = |errno| folder.error("write", PINS_NEW, errno);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let mut file = folder.open_file(PINS_NEW, flags).map_err(fail)?;
    let names = names.iter().copied().collect::<Vec<_>>().concat();
    let mut bytes = at::MAGIC.to_vec();
    bytes.extend(xxh3_64(&names).to_le_bytes());
    bytes.extend(names);
    let written = file.write_all(&bytes);
    written.map_err(|e| crate::Error::io("write", folder.path().join(PINS_NEW), e))?;
    folder.rename(PINS_NEW, PINS_NAME).map_err(fail)
}
