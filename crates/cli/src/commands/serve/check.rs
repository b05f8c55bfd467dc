//! Checks of settings that need nothing but the settings. The server makes them when it starts and
//! reloads, and `--show-config` makes them for what it prints.

use super::listeners::listeners;
use super::{access, store_server};
use crate::outcome::Failure;
use crate::settings::Loaded;

/// Checks that the settings can be used together, as far as that does not depend on the machine or
/// on the files that they name. The limits of each value are checked when it is set.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Failure> {
    access::check_logins(loaded)?;
    access::check_exposure(loaded, access::must_log_in(loaded))?;
    listeners(loaded)?;
    access::tls_files(loaded)?;
    store_server::check(loaded)
}
