//! Commands over the server: `INFO`, `CONFIG`, `COMMAND`, `SLOWLOG`, `LATENCY`, `MEMORY`, `DEBUG`.

pub(crate) mod cluster;
mod cluster_members;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod debug;
mod info;
pub(crate) mod keyspace;
pub(crate) mod latency;
pub(crate) mod memcached;
pub(crate) mod memory;
pub(crate) mod slowlog;
mod transfer;
