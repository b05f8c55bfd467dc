//! The settings of a folder: reading and changing them.

use crate::error::{Error, Result};
use crate::folder::names::is_own;
use crate::folder::settings::{self, Settings, StoredSettings};
use crate::guard::FolderGuard;
use crate::index::Index;
use crate::options::{Options, max_part_len};
use crate::segments::Segments;

impl Segments {
    /// Returns options that create the folder as it is now, after it was removed: the options that
    /// it was opened with, with its current limits and sharing.
    pub fn options_to_recreate(&self) -> Options {
        let options = self.options.clone();
        match self.index().and_then(Index::settings) {
            Some(settings) => options
                .limit(settings.limit)
                .min_free(settings.min_free)
                .share_with_group(settings.shared),
            None => options,
        }
    }

    /// Returns the limit of the folder, which any process can change. `None` while another process
    /// rebuilds the index.
    pub fn limit(&self) -> Option<u64> {
        Some(self.index()?.settings()?.limit)
    }

    /// Returns the maximum length of a part in bytes: an eighth of the current limit, at most 4
    /// GiB.
    pub fn max_part_len(&self) -> u64 {
        let settings = self.index().and_then(Index::settings);
        max_part_len(settings.map_or(Options::MIN_LIMIT, |settings| settings.limit))
    }

    /// Returns the length of a segment, which a process reserves at once. Puts of about this length
    /// are efficient.
    pub fn segment_len(&self) -> u64 {
        let settings = self.index().and_then(Index::settings);
        let limit = settings.map_or(Options::MIN_LIMIT, |settings| settings.limit);
        crate::options::segment_len(&self.options, limit)
    }

    /// Changes the [`Options::limit`](crate::Options::limit) for all processes. Like that option,
    /// evicts the excess over a lower limit at once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Options`] if the limit is too small, and errors as [`Segments::prune`]
    /// does.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        let options = self.options.clone().limit(bytes);
        options.validate()?;
        let mut guard = self.folder_guard()?;
        guard.change_settings(Settings { limit: bytes, ..guard.settings })
    }

    /// Stores the settings among the options for all processes, and creates the index if there is
    /// none.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Options`] if the folder can only be read and an option differs from its
    /// settings.
    pub(crate) fn apply_options(&self) -> Result<()> {
        match self.check_writable() {
            Err(Error::ReadOnly { .. }) if self.options.have_settings() => {
                return self.check_options();
            }
            Err(Error::ReadOnly { .. }) => return Ok(()),
            checked => checked?,
        }
        let stored = settings::load(&self.folder);
        let copy = self.index().and_then(Index::settings);
        if let (Ok(StoredSettings::Good(stored)), Some(copy)) = (&stored, copy)
            && *stored == copy
            && copy.with(&self.options) == copy
        {
            self.folder.set_shared(copy.shared);
            return Ok(());
        }
        let mut guard = self.folder_guard()?;
        let wanted = guard.settings.with(&self.options);
        if wanted != guard.settings {
            guard.change_settings(wanted)?;
        }
        Ok(())
    }

    /// Checks that the settings of a read-only folder are those among the options.
    fn check_options(&self) -> Result<()> {
        let stored = match settings::load(&self.folder)? {
            StoredSettings::Good(stored) => Some(stored),
            StoredSettings::Absent | StoredSettings::Damaged => {
                self.index().and_then(Index::settings)
            }
        };
        let stored = stored.unwrap_or(Settings::DEFAULT);
        let Some((option, stored, found)) = stored.first_change(stored.with(&self.options)) else {
            return Ok(());
        };
        let expected = format!("{stored}, as in the folder, which this process can only read");
        Err(Error::Options { option, expected, found })
    }
}

impl FolderGuard<'_> {
    /// Changes the settings for all processes, and adapts modes, index and used space.
    pub(crate) fn change_settings(&mut self, settings: Settings) -> Result<()> {
        settings::store(&self.segments.folder, settings)?;
        let changes_sharing = self.settings.shared != settings.shared;
        self.settings = settings;
        self.exclusive.settings = Some(settings);
        self.index.set_settings(settings);
        self.segments.folder.set_shared(settings.shared);
        if changes_sharing {
            self.segments.folder.change_modes(is_own)?;
        }
        self.fit_index()?;
        self.free_space(0, true)?;
        Ok(())
    }
}
