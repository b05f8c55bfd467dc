//! Checks of settings that need nothing but the settings. The server makes them when it starts and
//! reloads, and `--show-config` makes them for what it prints.

use super::layers::Loaded;
use super::{access, listeners, stored};
use crate::commands::Failure;

/// Checks that the settings can be used together, as far as that does not depend on the machine or
/// on the files that they name. The limits of each value are checked when it is set.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Failure> {
    access::check_logins(loaded)?;
    access::check_exposure(loaded, access::must_log_in(loaded))?;
    listeners(loaded)?;
    access::tls_files(loaded)?;
    stored::check(loaded)
}
