//! The settings, for a thread that has exclusive access.

use crate::error::{Error, Result};
use crate::folder::settings::{self, Settings, StoredSettings};
use crate::index::Index;
use crate::layout::SETTINGS_NAME;
use crate::segments::{ExclusiveState, Segments};

impl Segments {
    /// Returns the settings of the folder, and restores a damaged settings file or copy in the
    /// index. A process that changes the file changes the copy as well, so the file is read only if
    /// the copy changed, or if `is_due`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Settings`] if the file and the copy are damaged and the options have no
    /// limit, [`Error::Version`] if a newer version wrote the file, and the error of the system if
    /// nothing else has the settings.
    pub(crate) fn load_settings(
        &self,
        index: Option<&Index>,
        exclusive: &mut ExclusiveState,
        is_due: bool,
    ) -> Result<Settings> {
        let copy = index.and_then(Index::settings);
        if let Some(settings) = copy.filter(|copy| !is_due && exclusive.settings == Some(*copy)) {
            return Ok(settings);
        }
        let known = copy.or(exclusive.settings);
        let found = match settings::load(&self.folder) {
            Ok(StoredSettings::Good(settings)) => settings,
            Ok(damaged) => {
                let path = || self.path().join(SETTINGS_NAME);
                let default = Settings::DEFAULT.with(&self.options);
                let settings = match known {
                    Some(known) => known,
                    // The default limit might be far more than the disk has.
                    None if damaged == StoredSettings::Damaged && self.options.limit.is_none() => {
                        return Err(Error::Settings { path: path() });
                    }
                    None => default,
                };
                // A full disk must not prevent eviction.
                let _ = settings::store(&self.folder, settings);
                settings
            }
            Err(error @ Error::Version { .. }) => return Err(error),
            Err(error) => known.ok_or(error)?,
        };
        if let Some(index) = index.filter(|_| copy != Some(found)) {
            index.set_settings(found);
        }
        self.folder.set_shared(found.shared);
        exclusive.settings = Some(found);
        Ok(found)
    }
}
