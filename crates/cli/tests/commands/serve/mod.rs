//! `nuthatch serve` as users run it: settings, errors, logs, reload and shutdown.

mod access;
mod cluster;
mod compression;
mod configuration;
mod disk;
mod disk_compression;
mod files;
mod from_mrcache;
mod from_poor_mans_cache;
mod life;
mod live_page;
mod messages;
mod old_server;
mod reload;
mod resources;
mod snapshots;
pub(crate) mod stored;
mod warm_restart;
