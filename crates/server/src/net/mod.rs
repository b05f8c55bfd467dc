//! Connections: listening, accepting, receiving, executing batches of requests, and sending; and
//! the I/O backends.

pub(crate) mod accepting;
mod attempts;
pub(crate) mod batch;
pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod decoders;
pub(crate) mod disk;
mod disk_reads;
pub(crate) mod driver;
pub(crate) mod forwarding;
pub(crate) mod listener;
pub(crate) mod pending_value;
pub(crate) mod reactor;
mod receive_value;
pub(crate) mod work;
