//! The settings, for a thread that has the lock of the folder.

use crate::error::{Error, Result};
use crate::folder::settings::{self, Settings, Stored};
use crate::index::Index;
use crate::layout::SETTINGS_NAME;
use crate::segments::{Alone, Segments};

impl Segments {
    /// Returns the settings of the folder, for a thread that has it to itself. What is damaged of
    /// them, the file or the copy in the index, is written again. Whoever changes the file changes
    /// the copy as well, so the file is read only if the copy is not as before, or if `due`.
    pub(crate) fn settings_now(
        &self,
        index: Option<&Index>,
        alone: &mut Alone,
        due: bool,
    ) -> Result<Settings> {
        let copy = index.and_then(Index::settings);
        if let Some(settings) = copy.filter(|copy| !due && alone.settings == Some(*copy)) {
            return Ok(settings);
        }
        let known = copy.or(alone.settings);
        let found = match settings::load(&self.folder) {
            Ok(Stored::Good(settings)) => settings,
            Ok(damaged) => {
                let path = || self.path().join(SETTINGS_NAME);
                let default = Settings::DEFAULT.with(&self.options);
                let settings = match known {
                    Some(known) => known,
                    // The usual limit might be far more than what the user has room for.
                    None if damaged == Stored::Damaged && self.options.limit.is_none() => {
                        return Err(Error::Settings { path: path() });
                    }
                    None => default,
                };
                // A disk that is full must not keep anybody from making room.
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
        alone.settings = Some(found);
        Ok(found)
    }
}
