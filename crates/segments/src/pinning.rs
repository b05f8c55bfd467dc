//! Pinning names, so that their parts are not evicted.

use crate::error::Result;
use crate::folder::pins::{Name, Pins, load, store};
use crate::layout::pins as at;
use crate::segments::Segments;
use std::collections::BTreeSet;

impl Segments {
    /// Pins a name, or unpins it. Its group is the name itself.
    ///
    /// # Errors
    ///
    /// Returns an error if the list of pins cannot be read or written, or if another process or
    /// thread has exclusive access for too long.
    pub fn pin(&self, name: Name, pinned: bool) -> Result<()> {
        if pinned { self.pin_group(name, &[name]) } else { self.unpin_group(name) }
    }

    /// Pins names for a group, in place of those that were pinned for it before.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Segments::pin`].
    pub fn pin_group(&self, group: Name, names: &[Name]) -> Result<()> {
        self.change_pins(|pins| {
            pins.retain(|_, of| *of != group);
            pins.extend(names.iter().map(|name| (*name, group)));
        })
    }

    /// Unpins all names of a group, and the name that equals the group.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Segments::pin`].
    pub fn unpin_group(&self, group: Name) -> Result<()> {
        self.change_pins(|pins| pins.retain(|name, of| *of != group && *name != group))
    }

    /// Replaces the names of a group if it has a pin. Returns whether it has one.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Segments::pin`].
    pub fn move_pin(&self, group: Name, names: &[Name]) -> Result<bool> {
        // Most groups have no pin, and then no lock is taken.
        if !load(&self.folder)?.values().any(|of| *of == group) {
            return Ok(false);
        }
        self.pin_group(group, names)?;
        Ok(true)
    }

    /// Returns the pinned names.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read the list.
    pub fn pinned(&self) -> Result<BTreeSet<Name>> {
        Ok(load(&self.folder)?.into_keys().collect())
    }

    /// Changes the list of pins under exclusive access.
    fn change_pins(&self, change: impl FnOnce(&mut Pins)) -> Result<()> {
        let mut guard = self.folder_guard()?;
        let before = load(&self.folder)?;
        let mut pins = before.clone();
        change(&mut pins);
        if pins == before {
            return Ok(());
        }
        if pins.len() > at::MAX_PINS {
            let (len, range) = (pins.len() as u64, (0, at::MAX_PINS as u64));
            return Err(crate::Error::Length { what: "pins", len, range });
        }
        store(&self.folder, &pins)?;
        guard.repair()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::PINS_NAME;
    use crate::{Options, checksum};
    use std::fs;
    use tempfile::TempDir;

    const GROUP: Name = [9; 16];

    fn segments(folder: &TempDir) -> Segments {
        Segments::open(folder.path(), &Options::new().limit(4 << 20)).expect("a folder")
    }

    #[test]
    fn a_pin_moves_to_the_names_of_a_new_version() {
        let folder = TempDir::new().expect("a folder");
        let segments = segments(&folder);
        assert!(!segments.move_pin(GROUP, &[[2; 16]]).expect("a list"), "nothing was pinned");
        segments.pin_group(GROUP, &[[1; 16]]).expect("a pin");
        segments.pin([5; 16], true).expect("a pin");
        assert!(segments.move_pin(GROUP, &[[2; 16], [3; 16]]).expect("a pin"));
        assert_eq!(segments.pinned().expect("a list"), [[2; 16], [3; 16], [5; 16]].into());
        segments.unpin_group(GROUP).expect("no pin");
        assert_eq!(segments.pinned().expect("a list"), [[5; 16]].into());
    }

    #[test]
    fn a_list_of_the_first_version_is_read() {
        let folder = TempDir::new().expect("a folder");
        let segments = segments(&folder);
        let names = [[1; 16], [2; 16]].concat();
        let bytes = [&at::MAGIC_1[..], &checksum(&names).to_le_bytes(), &names].concat();
        fs::write(folder.path().join(PINS_NAME), bytes).expect("a file");
        assert_eq!(segments.pinned().expect("a list"), [[1; 16], [2; 16]].into());
        segments.pin([1; 16], false).expect("no pin");
        assert_eq!(segments.pinned().expect("a list"), [[2; 16]].into());
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_replaced_and_nothing_is_evicted() {
        let folder = TempDir::new().expect("a folder");
        let segments = segments(&folder);
        segments.pin([1; 16], true).expect("a pin");
        // Links are not followed, whichever user runs this test.
        let path = folder.path().join(PINS_NAME);
        fs::rename(&path, folder.path().join("elsewhere")).expect("a file");
        std::os::unix::fs::symlink("elsewhere", &path).expect("a link");
        segments.pin([2; 16], true).expect_err("it cannot be read");
        segments.clear().expect_err("what is pinned is not known");
        assert!(path.is_symlink());
    }
}
