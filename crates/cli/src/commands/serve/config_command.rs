//! What the command `CONFIG` of Redis shows and changes of the settings.

use crate::outcome::Failure;
use crate::settings::{ConfigName, LoadedSettings, SettingType, all_settings};
use nuthatch_server::state::Server;

/// Returns the settings that change while the server runs, by Redis's names.
pub(super) fn changeable_settings(loaded: &LoadedSettings) -> Vec<(&'static str, String)> {
    let changeable = all_settings().filter_map(|setting| match setting.config_name {
        ConfigName::Changeable(name) => {
            Some((name, setting.value_type.to_config_text(&loaded.settings)?))
        }
        ConfigName::ReadOnly(_) | ConfigName::None => None,
    });
    changeable.collect()
}

/// Passes the settings to the server that `CONFIG` shows and changes.
pub(super) fn pass_settings(loaded: &LoadedSettings, server: &mut Server) -> Result<(), Failure> {
    for setting in all_settings() {
        let Some(text) = setting.value_type.to_config_text(&loaded.settings) else { continue };
        match (setting.config_name, &setting.value_type) {
            (ConfigName::Changeable(name), _) => {
                let changed = server.settings.change(name, &text);
                changed.map_err(|problem| loaded.invalid(setting.name, problem))?;
            }
            // The server has the values of all others.
            (ConfigName::ReadOnly(name), SettingType::Path(_)) => {
                server.fixed_settings.push((name, text));
            }
            (ConfigName::ReadOnly(_) | ConfigName::None, _) => {}
        }
    }
    Ok(())
}
