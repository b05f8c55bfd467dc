//! The list of pins: names whose parts are not evicted. The file is replaced as a whole.
//!
//! Every pin belongs to a group, which the caller chooses. A versioned object has one name per
//! version and one group for all versions, so that a pin can move to a new version.

use super::Folder;
use crate::checksum::checksum;
use crate::error::Result;
use crate::layout::{PINS_NAME, PINS_NEW, pins as at};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::Read;

/// A name of parts, or of a group.
pub(crate) type Name = [u8; 16];

/// The group of each pinned name.
pub(crate) type Pins = BTreeMap<Name, Name>;

/// Reads the list. A missing or damaged list is empty.
///
/// # Errors
///
/// Returns the error of the system if it does not read the list: then the caller must neither evict
/// pinned parts nor replace the list.
pub(crate) fn load(folder: &Folder) -> Result<Pins> {
    let file = match folder.open_file(PINS_NAME, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Pins::new()),
        Err(errno) => return Err(folder.error("open", PINS_NAME, errno)),
    };
    let mut bytes = Vec::new();
    let max = at::NAMES + at::MAX_PINS * at::ENTRY_LEN;
    let read = file.take(max as u64).read_to_end(&mut bytes);
    read.map_err(|error| crate::Error::io("read", folder.path().join(PINS_NAME), error))?;
    Ok(decode(&bytes).unwrap_or_default())
}

/// Decodes a list. Returns `None` if it is damaged.
fn decode(bytes: &[u8]) -> Option<Pins> {
    let (head, entries) = bytes.split_at_checked(at::NAMES)?;
    if head[at::CHECK..] != checksum(entries).to_le_bytes() {
        return None;
    }
    let name = |bytes: &[u8]| bytes.try_into().ok();
    match &head[..at::CHECK] {
        magic if magic == at::MAGIC => {
            let entries = entries.chunks_exact(at::ENTRY_LEN);
            entries
                .map(|entry| Some((name(&entry[..at::GROUP])?, name(&entry[at::GROUP..])?)))
                .collect()
        }
        // Entries of the first version are names without groups.
        magic if magic == at::MAGIC_1 => entries
            .chunks_exact(at::GROUP)
            .map(|entry| Some((name(entry)?, name(entry)?)))
            .collect(),
        _ => None,
    }
}

/// Replaces the list durably.
///
/// # Errors
///
/// Returns the same errors as [`Folder::replace`].
pub(crate) fn store(folder: &Folder, pins: &Pins) -> Result<()> {
    let entries = pins.iter().flat_map(|(name, group)| [*name, *group]);
    let entries = entries.collect::<Vec<_>>().concat();
    let mut bytes = at::MAGIC.to_vec();
    bytes.extend(checksum(&entries).to_le_bytes());
    bytes.extend(entries);
    folder.replace(PINS_NEW, PINS_NAME, &bytes)
}
