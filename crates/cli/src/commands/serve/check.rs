//! Checks of settings that do not depend on files or the machine. The server runs them when it
//! starts and reloads, and `--show-config` runs them before it prints.

use super::listeners::listeners;
use super::{access, cluster, disk, snapshots, store_server};
use crate::outcome::Failure;
use crate::settings::LoadedSettings;

/// Checks that the settings can be used together, as far as that does not depend on the machine or
/// on the files that they name. The limits of each value are checked when it is set.
pub(crate) fn check(loaded: &LoadedSettings) -> Result<(), Failure> {
    access::check_logins(loaded)?;
    access::check_admin_hosts(loaded)?;
    access::check_exposure(loaded, access::must_log_in(loaded))?;
    listeners(loaded)?;
    access::tls_files(loaded)?;
    disk::check(loaded)?;
    cluster::check(loaded)?;
    snapshots::sources(loaded)?;
    store_server::check(loaded)
}
