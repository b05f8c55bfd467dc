//! The command as users run it: arguments, output, messages and exit statuses.

mod axoncache;
mod build;
mod chunks;
mod cluster;
mod debugging;
mod delivery;
mod dict;
mod diff;
mod doctor;
mod duplicates;
mod folder;
mod formats;
mod help;
mod json;
mod keys;
mod merge;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod ping;
mod preload;
mod read;
mod roundtrip;
mod serve;
mod server;
mod servers;
mod service;
mod sets;
mod store;
mod store_cut_off;
mod store_remote;
#[path = "../stores/mod.rs"]
mod stores;
mod tier;
#[path = "../tls/mod.rs"]
mod tls;
mod top;
mod verify;
