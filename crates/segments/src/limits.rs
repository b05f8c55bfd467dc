//! The settings of a folder, as users read and change them.

use crate::error::{Error, Result};
use crate::folder::names::is_own;
use crate::folder::settings::{self, Settings, Stored};
use crate::guard::Turn;
use crate::index::Index;
use crate::options::{Options, part_most};
use crate::segments::Segments;

impl Segments {
    /// Returns options that make the folder again as it is now, after it was removed: those that it
    /// was opened with, with the limits and the sharing that it has.
    pub fn options_to_make_again(&self) -> Options {
        let options = self.options.clone();
        match self.index().and_then(Index::settings) {
            Some(settings) => options
                .limit(settings.limit)
                .least_free(settings.least_free)
                .share_with_group(settings.shared),
            None => options,
        }
    }

    /// Returns the limit of the folder, which any process can change. `None` while another process
    /// makes the index again.
    pub fn limit(&self) -> Option<u64> {
        Some(self.index()?.settings()?.limit)
    }

    /// How long one part may be, under the limit of the folder.
    pub fn part_most(&self) -> u64 {
        let settings = self.index().and_then(Index::settings);
        part_most(settings.map_or(Options::MIN_LIMIT, |settings| settings.limit))
    }

    /// How many bytes one process reserves at once; a good measure for how much to put at once.
    pub fn segment_len(&self) -> u64 {
        let settings = self.index().and_then(Index::settings);
        let limit = settings.map_or(Options::MIN_LIMIT, |settings| settings.limit);
        crate::options::segment_len(&self.options, limit)
    }

    /// Changes the [`Options::limit`](crate::Options::limit) for all processes. Like that option,
    /// this evicts at once what the folder has beyond a lower limit.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        let options = self.options.clone().limit(bytes);
        options.validate()?;
        let mut turn = self.own_turn()?;
        turn.change_settings(Settings { limit: bytes, ..turn.settings })
    }

    /// Stores the settings among the options for all processes, and makes the index if there is
    /// none.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Options`] if the folder can only be read and an option differs from its
    /// settings.
    pub(crate) fn settle_options(&self) -> Result<()> {
        match self.check_writable() {
            Err(Error::ReadOnly { .. }) if self.options.have_settings() => {
                return self.check_options();
            }
            Err(Error::ReadOnly { .. }) => return Ok(()),
            checked => checked?,
        }
        let stored = settings::load(&self.folder);
        let copy = self.index().and_then(Index::settings);
        if let (Ok(Stored::Good(stored)), Some(copy)) = (&stored, copy)
            && *stored == copy
            && copy.with(&self.options) == copy
        {
            self.folder.set_shared(copy.shared);
            return Ok(());
        }
        let mut turn = self.own_turn()?;
        let wanted = turn.settings.with(&self.options);
        if wanted != turn.settings {
            turn.change_settings(wanted)?;
        }
        Ok(())
    }

    /// Checks that the settings of a folder that can only be read are those among the options.
    fn check_options(&self) -> Result<()> {
        let stored = match settings::load(&self.folder)? {
            Stored::Good(stored) => Some(stored),
            Stored::Absent | Stored::Damaged => self.index().and_then(Index::settings),
        };
        let stored = stored.unwrap_or(Settings::DEFAULT);
        let Some((option, stored, found)) = stored.first_change(stored.with(&self.options)) else {
            return Ok(());
        };
        let expected = format!("{stored} as it is, since this process can only read the folder");
        Err(Error::Options { option, expected, found })
    }
}

impl Turn<'_> {
    /// Changes the settings for every process.
    pub(crate) fn change_settings(&mut self, settings: Settings) -> Result<()> {
        settings::store(&self.of.folder, settings)?;
        let shared = self.settings.shared != settings.shared;
        self.settings = settings;
        self.alone.settings = Some(settings);
        self.index.set_settings(settings);
        self.of.folder.set_shared(settings.shared);
        if shared {
            self.of.folder.change_modes(is_own)?;
        }
        self.fit_index()?;
        self.room(0, true)?;
        Ok(())
    }
}
