//! How a node of a cluster connects to the others.

use crate::files::read_secret;
use crate::outcome::Failure;
use crate::settings::{LoadedSettings, Settings};
use nuthatch_server::NodeAccess;

/// Returns how this node connects to the others: with the login that it requires itself.
pub(super) fn node_access(loaded: &LoadedSettings) -> Result<NodeAccess, Failure> {
    let Settings { password, password_file, cluster_move_rate, .. } = &loaded.settings;
    let password = match (password_file, password) {
        (Some(path), _) => Some(read_secret(path, "a password")?),
        (None, Some(password)) => Some(password.0.clone()),
        (None, None) => None,
    };
    Ok(NodeAccess { password, bytes_per_s: *cluster_move_rate, ..NodeAccess::default() })
}
