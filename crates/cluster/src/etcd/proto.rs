//! Code that `build.rs` generates from `etcd.proto`.

#![allow(
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "it is generated"
)]

tonic::include_proto!("etcdserverpb");
