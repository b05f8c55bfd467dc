//! Pins: objects that are not evicted.

use crate::chunks::Chunks;
use crate::error::Result;
use crate::key::Key;

impl Chunks {
    /// Pins an object or unpins it. The chunks of a pinned object are not evicted, including those
    /// that are stored later.
    ///
    /// The pin of an object of blocks belongs to its address: when [`Chunks::put_metadata`] records
    /// another version, the pin moves from the previous version to that one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Folder`](crate::Error::Folder) if the list of pins cannot be read or
    /// written.
    pub fn pin(&self, key: &Key, pinned: bool) -> Result<()> {
        if pinned { self.pin_versions(std::slice::from_ref(key)) } else { self.unpin(key) }
    }

    /// Pins several objects at one address, in place of those that are pinned there.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Folder`](crate::Error::Folder) if the list of pins cannot be read or
    /// written.
    pub fn pin_versions(&self, keys: &[Key]) -> Result<()> {
        let Some(first) = keys.first() else { return Ok(()) };
        let group = pin_group(first);
        // Metadata are small and needed to read anything while the origin is unavailable.
        let mut names = vec![group];
        names.extend(keys.iter().map(|key| key.name));
        Ok(self.segments.pin_group(group, &names)?)
    }

    /// Removes the pin of an object and its address.
    pub(crate) fn unpin(&self, key: &Key) -> Result<()> {
        self.segments.unpin_group(pin_group(key))?;
        // A pin from a version in which pins did not belong to addresses.
        if self.segments.pinned()?.contains(&key.name) {
            self.segments.unpin_group(key.name)?;
        }
        Ok(())
    }
}

/// Returns the group that a pin of an object belongs to: its address, or the object itself.
fn pin_group(key: &Key) -> [u8; 16] {
    let metadata = key.address().and_then(|address| Key::metadata(&address).ok());
    metadata.map_or(key.name, |metadata| metadata.name)
}
