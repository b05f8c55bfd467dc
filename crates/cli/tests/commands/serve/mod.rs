//! `nuthatch serve` as users run it: settings, errors, logs, reload and shutdown.

mod access;
mod configuration;
mod files;
mod life;
mod messages;
mod reload;
mod resources;
pub(crate) mod stored;
mod warm_restart;
