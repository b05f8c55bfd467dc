//! The table of all settings. Flags, the settings file, environment variables, `--show-config` and
//! `docs/configuration.md` follow it.
//!
//! A new setting is a field of [`Settings`](super::values::Settings), an entry in a file
//! of this folder, and a row on that page. A test fails if one of them is missing.

mod access;
mod clients;
mod listening;
mod memory;
mod monitoring;
mod store;

pub(crate) use listening::DEFAULT_ADMIN;

use super::setting::Setting;
use access::ACCESS;
use clients::CLIENTS;
use listening::LISTENING;
use memory::MEMORY;
use monitoring::MONITORING;
use store::STORE;

/// A group of settings on the help page.
pub(crate) struct Group {
    pub(crate) heading: &'static str,
    pub(crate) settings: &'static [Setting],
}

/// Returns all settings, in the order of the table.
pub(crate) fn all_settings() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// All settings, in groups.
pub(crate) const GROUPS: &[Group] = &[
    Group { heading: "Listening", settings: LISTENING },
    Group { heading: "Memory and threads", settings: MEMORY },
    Group { heading: "Clients", settings: CLIENTS },
    Group { heading: "Store", settings: STORE },
    Group { heading: "Access", settings: ACCESS },
    Group { heading: "Watching", settings: MONITORING },
];
