//! `nuthatch serve` as users run it: settings from anywhere, refusals, logs, and its end.

mod access;
mod configuration;
mod files;
mod life;
mod messages;
mod reload;
mod resources;
pub(crate) mod stored;
