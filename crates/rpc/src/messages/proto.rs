//! Code that `build.rs` generates from `store.proto`.

#![allow(
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "it is generated"
)]

tonic::include_proto!("nuthatch.store.v1");

/// The descriptor of the service, for reflection.
pub(crate) const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/store.descriptor"));
