//! What the command `CONFIG` of Redis shows and changes of the settings.

use crate::outcome::Failure;
use crate::settings::{Kind, Loaded, Told, settings};
use nuthatch_server::state::Server;

/// Returns the settings that change while the server runs, by Redis's names.
pub(super) fn changeable_settings(loaded: &Loaded) -> Vec<(&'static str, String)> {
    let mut configuration = loaded.configuration.clone();
    let changeable = settings().filter_map(|setting| match setting.told {
        Told::AndChanged(name) => Some((name, setting.kind.redis(&mut configuration)?)),
        Told::As(_) | Told::Not => None,
    });
    changeable.collect()
}

/// Tells the server what `CONFIG` shows and changes of the settings.
pub(super) fn tell_settings(loaded: &Loaded, server: &mut Server) -> Result<(), Failure> {
    let mut configuration = loaded.configuration.clone();
    for setting in settings() {
        let Some(text) = setting.kind.redis(&mut configuration) else { continue };
        match (setting.told, setting.kind) {
            (Told::AndChanged(name), _) => {
                let changed = server.settings.change(name, &text);
                changed.map_err(|problem| loaded.invalid(setting.name, problem))?;
            }
            // The server knows the others itself.
            (Told::As(name), Kind::Path(_)) => server.fixed_settings.push((name, text)),
            (Told::As(_) | Told::Not, _) => {}
        }
    }
    Ok(())
}
